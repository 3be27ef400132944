package target

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cluster"
	"github.com/kwok-dra/kwok-dra/internal/dractl/fleet"
)

// readLimit bounds the wait for a cluster that does not answer.
const readLimit = 10 * time.Second

// Known is what the cluster has that a target may name.
type Known struct {
	Templates []*devices.Template
	// Uses has for each target with nodes what these use.
	Uses map[string][]string
}

// KnownFor are the templates in the cluster, if one of the targets may name one. There need
// not be a cluster.
func KnownFor(ctx context.Context, streams cli.Streams, reach *cluster.Flags, targets []string) *Known {
	known := &Known{}
	catalogue, _ := profiles() // a failure shows when the target is read
	mayBeInCluster := func(part string) bool { return catalogue[part] == "" && !isPath(part) }
	if !slices.ContainsFunc(strings.Split(strings.Join(targets, ","), ","), mayBeInCluster) {
		return known
	}
	reached, err := reach.RESTConfig()
	if err != nil {
		return known
	}
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	objects, err := dynamic.NewForConfig(reached)
	client, clientErr := kubernetes.NewForConfig(reached)
	if err = cmp.Or(err, clientErr); err == nil {
		var set *config.Set
		if set, err = (&fleet.Templates{}).SetInCluster(ctx, streams, client, objects); err == nil {
			known.Templates = set.Templates
		}
	}
	if err != nil {
		streams.Tell("templates in the cluster are not known: %v\n", err)
	}
	return known
}
