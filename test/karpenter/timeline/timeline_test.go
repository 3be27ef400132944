package timeline

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/perf/pairs"
)

func newTimeline(tell func(Mark)) *Timeline {
	return &Timeline{tell: tell, change: make(chan struct{}), marks: map[Step]map[string]Mark{}, slices: map[string]map[string]seenSlice{}}
}

func slice(name, driver string, generation, count int64, devices int) *resourcev1.ResourceSlice {
	node := "n"
	return &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.ResourceSliceSpec{
		NodeName: &node,
		Driver:   driver,
		Pool:     resourcev1.ResourcePool{Name: node, Generation: generation, ResourceSliceCount: count},
		Devices:  make([]resourcev1.Device, devices),
	}}
}

// TestPoolComplete: a pool is complete with all slices of one generation.
func TestPoolComplete(t *testing.T) {
	t.Parallel()
	tl := newTimeline(nil)
	complete := func(driver string) string {
		mark, _ := tl.Find(PoolComplete, Pool("n", driver))
		return mark.Detail
	}
	tl.sawSlice(slice("a", "d", 1, 2, 3))
	tl.sawSlice(slice("x", "other", 1, 1, 1))
	require.Equal(t, "1 devices of other", complete("other"))
	tl.sawSlice(slice("b", "d", 2, 2, 4))
	require.Empty(t, complete("d"), "of two generations")
	tl.sawSlice(slice("a", "d", 2, 2, 3))
	require.Equal(t, "7 devices of d", complete("d"))

	tl.missedSlice(slice("a", "d", 2, 2, 3))
	tl.missedSlice(slice("b", "d", 2, 2, 4))
	_, gone := tl.Find(SlicesGone, "n")
	require.False(t, gone, "the other driver's is left")
	tl.missedSlice(slice("x", "other", 1, 1, 1))
	_, gone = tl.Find(SlicesGone, "n")
	require.True(t, gone)
}

// TestAdded: what is added is counted for each Pod with the pool of its node.
func TestAdded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var told []Step
		tl := newTimeline(func(mark Mark) { told = append(told, mark.Step) })
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{NodeName: "n"}}
		tl.sawNode(node)
		time.Sleep(3 * time.Millisecond)
		tl.sawPod(pod)
		time.Sleep(4 * time.Millisecond)
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue}}
		tl.sawPod(pod)
		every := func(string) bool { return true }
		_, err := tl.AddedTo("d", every)
		require.ErrorContains(t, err, "was not seen")

		tl.sawSlice(slice("a", "d", 1, 1, 1))
		added, err := tl.AddedTo("d", every)
		require.NoError(t, err)
		require.Equal(t, []Added{{Publishing: 7 * time.Millisecond, Preparing: 4 * time.Millisecond}}, added)
		require.Equal(t, 11*time.Millisecond, pairs.Quantile(Both(added), 0.95))
		require.Equal(t, []Step{NodeCreated, NodeReady, PodCreated, PodBound, PodPrepared, PoolComplete}, told, "each once")
		none, err := tl.AddedTo("d", func(string) bool { return false })
		require.NoError(t, err)
		require.Empty(t, none)
	})
}

func TestAwait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tl := newTimeline(nil)
		go func() {
			time.Sleep(time.Second)
			tl.markOnce(NodeGone, "n", "")
		}()
		mark, err := tl.Await(t.Context(), NodeGone, "n")
		require.NoError(t, err)
		require.Equal(t, NodeGone, mark.Step)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = tl.Await(ctx, NodeGone, "other")
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}
