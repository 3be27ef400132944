package validation

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice/features"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice/plan"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

const (
	// manyTemplates are how many valid templates are tried, and fewTemplates with
	// -short.
	manyTemplates = 2000
	fewTemplates  = 200
	// tryers are how many try at the same time.
	tryers = 16
	// usable is the least part of the random templates that must be valid, in
	// percent: the others prove nothing.
	usable = 40
)

var seedFlag = flag.Uint64("seed", 0, "the first of the random templates")

// testRandomTemplates has the API server take, with dry runs, all that the
// sidecar would make of random templates that it takes itself.
func testRandomTemplates(h *harness.H) {
	node := createRandomNode(h)
	run := &randomRun{
		h: h, node: node, seed: *seedFlag, prober: resourceslice.NewProber(h.Client),
	}
	if run.seed == 0 {
		run.seed = uint64(time.Now().UnixNano())
	}
	wanted := int64(manyTemplates)
	if testing.Short() {
		wanted = fewTemplates
	}
	var group sync.WaitGroup
	for range tryers {
		group.Go(func() {
			for run.tried.Load() < wanted && !h.Failed() {
				run.one(h.Context())
			}
		})
	}
	group.Wait()
	drawn, tried := run.drawn.Load(), run.tried.Load()
	h.Logf("%d templates, of which %d were valid and made %d slices", drawn, tried, run.taken.Load())
	if !h.Failed() {
		require.Greater(h, 100*tried/drawn, int64(usable), "too few templates are valid")
	}
}

func createRandomNode(h *harness.H) *corev1.Node {
	h.Helper()
	node := harness.FakeNode("random", "random")
	node.Labels["size"] = "8"
	node.Status.DeclaredFeatures = []string{"DRANodeAllocatableResources", "DRAOptionalNodeOperations"}
	node, err := h.Client.CoreV1().Nodes().Create(h.Context(), node, metav1.CreateOptions{})
	require.NoError(h, err)
	return node
}

// randomRun tries templates until enough of them were valid.
type randomRun struct {
	h      *harness.H
	node   *corev1.Node
	seed   uint64
	prober *resourceslice.Prober
	// drawn, tried and taken count templates, valid ones, and slices that the API
	// server took.
	drawn, tried, taken atomic.Int64
}

func (r *randomRun) one(ctx context.Context) {
	seed := r.seed + uint64(r.drawn.Add(1)) - 1
	document, err := randomTemplate(seed, harness.KubernetesMinor())
	if err != nil {
		r.h.Errorf("draw template of -seed %d: %v", seed, err)
		return
	}
	set, err := decodeOne(document)
	if err != nil {
		return // invalid, so it proves nothing
	}
	pools, err := poolsOf(set, r.node)
	if err != nil {
		return
	}
	fitted, err := features.Fit(ctx, r.prober, pools)
	if err != nil {
		return
	}
	needs, err := plan.New("", r.node, &fitted, nil)
	if err != nil {
		return
	}
	for _, dropped := range fitted.Dropped {
		if harness.KubernetesMinor() > 35 {
			r.h.Errorf("the API server drops %s", dropped.Field.Name)
		}
	}
	r.tried.Add(1)
	for _, slice := range needs.Create {
		if err := r.create(ctx, slice); err != nil {
			r.h.Errorf("-seed %d: slice %s: %v\n%s", seed, slice.Name, err, document)
			return
		}
		r.taken.Add(1)
	}
}

// create has the API server take a slice as it is, without storing it.
func (r *randomRun) create(ctx context.Context, slice *resourcev1.ResourceSlice) error {
	stored, err := r.h.Client.ResourceV1().ResourceSlices().Create(ctx, slice, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	if facts.ContentOf(&stored.Spec) != facts.ContentOf(&slice.Spec) {
		return errors.New("the API server would store something else")
	}
	return nil
}

// decodeOne reads a document as the sidecar does.
func decodeOne(document []byte) (*config.Set, error) {
	decoded, err := config.Decode("random", document)
	if err != nil {
		return nil, err
	}
	store := config.NewStore("random")
	if err := store.Replace("random", decoded); err != nil {
		return nil, err
	}
	return store.Current(), nil
}

// poolsOf makes the pools of a node and those that it shares with others.
func poolsOf(set *config.Set, node *corev1.Node) ([]devices.Pool, error) {
	var all []devices.Pool
	for _, templates := range devices.SelectForNode(set.Templates, node).ByDriver {
		pools, refusals, err := devices.PoolsForNode(templates, lifecycle.NewObject(node), nil)
		if len(refusals) > 0 {
			err = refusals[0].Err
		}
		if err != nil {
			return nil, err
		}
		all = slices.Concat(all, pools)
	}
	for _, template := range set.Shared() {
		pool, err := template.NewSharedPool()
		if err != nil {
			return nil, err
		}
		all = append(all, *pool)
	}
	return all, nil
}
