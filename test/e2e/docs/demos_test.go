package docs

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/tools/demo/world"
)

// usedUp are the pages after which the demo is another one, each with what its changes
// begin with.
var usedUp = map[string]string{
	"docs/guides/break-devices.md":   "Node  h100-1 was",                // the condition KubeletRestarted remains
	"docs/guides/copy-fleet.md":      "",                                // all nodes are copies, as the page says
	"docs/guides/share-and-place.md": "DeviceClass  gpu.nvidia.com was", // that of the demo gets the labels of a profile
}

// demos are clusters as "make demo" leaves them. Pages share them one after the other: a
// page has to leave behind what it was given. What kwok-dra alone remembers, its metrics
// and the timeline, goes on; no page prints that.
type demos struct {
	// ctx ends with the test of all pages.
	ctx  context.Context
	free chan *world.World
}

// newDemos makes an empty pool, whose clusters end with the test of all pages.
func newDemos(t *testing.T, pages int) *demos {
	t.Helper()
	d := &demos{t.Context(), make(chan *world.World, pages)}
	t.Cleanup(func() {
		close(d.free)
		for demo := range d.free {
			require.NoError(t, demo.Cluster.Stop())
		}
	})
	return d
}

// take gives a page a demo that nobody has, until the test of the page ends.
func (d *demos) take(t *testing.T, path string) *world.World {
	t.Helper()
	var demo *world.World
	select {
	case demo = <-d.free:
	default:
		var err error
		demo, err = world.Start(d.ctx, world.Options{AnyPort: true})
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		if _, isUsedUp := usedUp[path]; isUsedUp || t.Failed() {
			demo.Cluster.StopAfter(t)
			return
		}
		d.free <- demo
	})
	require.NoError(t, demo.AwaitNodes(t.Context()))
	require.NoError(t, demo.RunPods(t.Context()))
	// In a demo that is new, or an hour old, there is nothing to read of other pages.
	_, err := demo.Cluster.Kubectl(t.Context(), "delete", "events", "--all", "--all-namespaces")
	require.NoError(t, err)
	return demo
}
