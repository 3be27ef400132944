// Package karpenter builds Karpenter with its KWOK provider and runs it against a
// cluster, as its own process.
package karpenter

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// Component is Karpenter's name among the components of a cluster.
const Component = "karpenter"

// Binary builds Karpenter and returns its path. It builds once per process.
var Binary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(sidecar.Root(), "bin", "karpenter")
	if err := sidecar.Build(moduleDir(), path, "./provider"); err != nil {
		return "", err
	}
	return path, nil
})

// moduleDir has the module that requires Karpenter.
func moduleDir() string { return filepath.Join(sidecar.Root(), "test", "karpenter") }

// Options say with what Karpenter runs. The zero value is Karpenter by its own
// defaults.
type Options struct {
	// InstanceTypes is a file of instance types as Karpenter's KWOK provider has it.
	// Optional, default are the provider's own.
	InstanceTypes string
	// Templates are files of ResourcePoolTemplates. With any, Karpenter makes nodes for
	// Pods with claims. Optional.
	Templates []string
}

// Start installs Karpenter's custom resource definitions in a cluster and starts
// Karpenter as its administrator. It takes some seconds until it is ready, and
// its NodePools with it.
func Start(ctx context.Context, c *cluster.Cluster, o Options) error {
	binary, err := Binary()
	if err != nil {
		return err
	}
	if err := installDefinitions(ctx, c); err != nil {
		return err
	}
	return c.AddComponent(Component, binary, o.commandArguments()...)
}

func (o Options) commandArguments() []string {
	return []string{
		// By default Karpenter makes no nodes for Pods with claims.
		"--ignore-dra-requests=" + strconv.FormatBool(len(o.Templates) == 0),
		"--instance-types-file-path=" + o.InstanceTypes,
		"--resource-pool-templates-file-paths=" + strings.Join(o.Templates, ","),
		"--disable-leader-election=true",
		// Ports that are free.
		"--metrics-port=0",
		"--health-probe-port=0",
	}
}
