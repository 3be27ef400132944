package status

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/controller/installation"
	"github.com/kwok-dra/kwok-dra/internal/controller/shard"
	"github.com/kwok-dra/kwok-dra/internal/testing/runtest"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// cluster has one template, which several installations read.
type cluster struct {
	mu       sync.Mutex
	template config.Acceptance
	writers  []*Writer
	seen     []int64
}

func newCluster() *cluster {
	return &cluster{template: config.Acceptance{Generation: 1, Templates: []string{"a"}, Source: &unstructured.Unstructured{}}}
}

func (c *cluster) read(string) map[string]config.Acceptance {
	c.mu.Lock()
	defer c.mu.Unlock()
	return map[string]config.Acceptance{"a": c.template}
}

// store keeps a status, and has all Writers see it.
func (c *cluster) store(status *v1alpha1.ResourcePoolTemplateStatus) {
	shown, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	c.mu.Lock()
	c.template.Source = &unstructured.Unstructured{Object: map[string]any{"status": shown}}
	c.mu.Unlock()
	for _, w := range c.writers {
		w.Changed()
	}
}

func (c *cluster) shown() v1alpha1.ResourcePoolTemplateStatus {
	return Shown[v1alpha1.ResourcePoolTemplateStatus](c.read("")["a"].Source)
}

// run runs a Writer of an installation that has so many nodes.
func (c *cluster) run(t *testing.T, as installation.ID, nodes int) (stop func()) {
	t.Helper()
	client := fake.NewSimpleDynamicClient(runtime.NewScheme())
	client.PrependReactor("patch", "resourcepooltemplates", func(action clienttesting.Action) (bool, runtime.Object, error) {
		object := v1alpha1.ResourcePoolTemplate{Status: c.shown()} // as a merge patch
		if err := json.Unmarshal(action.(clienttesting.PatchActionImpl).GetPatch(), &object); err != nil {
			return true, nil, err
		}
		c.mu.Lock()
		c.seen = append(c.seen, object.Status.Nodes)
		c.mu.Unlock()
		c.store(&object.Status)
		return true, nil, nil
	})
	w := New(client, shard.New(shard.Options{Mode: shard.None, Installation: as}), nil, c.read, config.OwnKinds()...)
	c.mu.Lock()
	c.writers = append(c.writers, w)
	c.mu.Unlock()
	for i := range nodes {
		w.Outcomes("node "+string(rune('a'+i)), on(1, 8))
	}
	return runtest.UntilEnd(t.Context(), t, func(ctx context.Context) { w.Run(ctx, func() bool { return true }) })
}

// writes are the numbers of nodes that were written in a time.
func (c *cluster) writes(during time.Duration) []int64 {
	time.Sleep(during)
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := c.seen
	c.seen = nil
	return seen
}

// TestStatusOfTwoInstallations: each counts its own nodes. The status is of one of them,
// and says of which; when that one is gone, the other one notices.
func TestStatusOfTwoInstallations(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		stop := c.run(t, "one", 1)
		require.Equal(t, []int64{1}, c.writes(time.Minute))
		c.run(t, "two", 3)
		require.Equal(t, []int64{3, 1}, c.writes(10*time.Minute))
		require.Equal(t, "one", c.shown().Installation)
		c.writers[0].Outcomes("node z", on(1, 8))
		require.Equal(t, []int64{2}, c.writes(10*time.Minute), "what changes is written")
		require.LessOrEqual(t, len(c.writes(10*time.Hour)), 40)
		stop()
		c.writes(2 * time.Hour)
		require.Equal(t, "two", c.shown().Installation)
		require.Empty(t, c.writes(10*time.Hour))
	})
}

// TestStatusOfAPreviousVersion: it does not know of installations, and its patches leave
// the name of this one in the status.
func TestStatusOfAPreviousVersion(t *testing.T) {
	t.Parallel()
	for name, ids := range map[string][2]installation.ID{"one of two": {"one", ""}, "both": {"", ""}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newCluster()
				c.run(t, ids[0], 1)
				c.run(t, ids[1], 2)
				require.LessOrEqual(t, len(c.writes(10*time.Minute)), 4)
				require.LessOrEqual(t, len(c.writes(10*time.Minute)), 2)
			})
		})
	}
}

// TestStatusAfterARenaming: an installation whose selection of nodes has changed is
// another one, and writes the status at once.
func TestStatusAfterARenaming(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		stop := c.run(t, "one", 1)
		c.writes(time.Minute)
		stop()
		stop = c.run(t, "one", 1)
		require.Empty(t, c.writes(time.Minute), "a restart writes nothing")
		stop()
		c.run(t, "renamed", 2)
		require.Equal(t, []int64{2}, c.writes(10*time.Minute))
		require.Equal(t, "renamed", c.shown().Installation)
	})
}

// TestStatusIsRepaired once in ten minutes, and that of a template that is made anew at once.
func TestStatusIsRepaired(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.run(t, "one", 1)
		c.writes(time.Minute)
		edited := c.shown()
		edited.Nodes = 7
		c.store(&edited)
		require.Equal(t, []int64{1}, c.writes(time.Minute))
		for range 10 {
			c.store(&edited)
			c.writes(10 * time.Second)
		}
		require.Empty(t, c.writes(time.Minute))
		c.mu.Lock()
		c.template.Source = &unstructured.Unstructured{}
		c.template.Source.SetUID("again")
		c.mu.Unlock()
		c.writers[0].Changed()
		require.Equal(t, []int64{1}, c.writes(time.Minute))
	})
}
