package resourceslice

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/testing/configtest"
)

// TestTakeOver: a slice that has lost its label is not in the cache, but in the
// way of the new one.
func TestTakeOver(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		node := fakeNode("n", true)
		lost := sliceOf(t, node)
		lost.Labels, lost.ResourceVersion, lost.UID = nil, "900", "lost"
		lost.Spec.AllNodes = new(true)
		w := newWorld(t, template("a", "d", "{name: gpu}"), node, lost)
		w.wrote("create 1, patch 1")
		slices := w.list(t)
		require.Len(t, slices, 1)
		require.EqualValues(t, "lost", slices[0].UID)
		require.Equal(t, "kwok-dra", slices[0].Labels["dra.kwok.x-k8s.io/managed-by"])
		require.Nil(t, slices[0].Spec.AllNodes)
		require.Equal(t, "gpu", slices[0].Spec.Devices[0].Name)
	})
}

// TestGenerationOfATakenOverPool: slices that have lost their labels are still there,
// and so is their generation.
func TestGenerationOfATakenOverPool(t *testing.T) {
	edit := func(w *world, change func(slice *resourcev1.ResourceSlice)) {
		for _, slice := range w.list(w.t) {
			w.edit(slice.Name, change)
		}
	}
	unlabel := func(slice *resourcev1.ResourceSlice) { slice.Labels = nil }
	for name, test := range map[string]struct {
		then       func(w *world)
		wrote      string
		generation int64
		slices     int
	}{
		"labels": {func(w *world) { edit(w, unlabel) }, "create 1, patch 2", 2, 2},
		"other value": {func(w *world) {
			edit(w, func(slice *resourcev1.ResourceSlice) {
				slice.Labels = map[string]string{"dra.kwok.x-k8s.io/managed-by": "me"}
			})
		}, "create 1, patch 2", 2, 2},
		"one label": {func(w *world) { w.edit(w.list(w.t)[0].Name, unlabel) }, "create 1, patch 2", 3, 2},
		"another pool": {func(w *world) {
			edit(w, unlabel)
			configtest.Replace(w.t, w.store, template("a", "d", "{name: nic, count: 130}"))
		}, "create 1, patch 2", 3, 2},
		"smaller": {func(w *world) {
			edit(w, unlabel)
			configtest.Replace(w.t, w.store, template("a", "d", "{name: gpu}"))
		}, "create 1, delete 1, patch 1", 2, 1},
		"larger": {func(w *world) {
			edit(w, unlabel)
			configtest.Replace(w.t, w.store, template("a", "d", "{name: gpu, count: 257}"))
		}, "create 2, patch 2", 3, 3},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, template("a", "d", "{name: gpu}"), fakeNode("n", true))
				configtest.Replace(t, w.store, template("a", "d", twoSlices))
				w.wrote("create 2, patch 1")
				w.stop()
				test.then(w)
				preview := w.preview(t)
				w.start()
				w.wrote(test.wrote)
				list := w.list(t)
				require.Len(t, list, test.slices)
				for _, slice := range list {
					require.Equal(t, resourcev1.ResourcePool{Name: "n", Generation: test.generation, ResourceSliceCount: int64(test.slices)}, slice.Spec.Pool)
					require.Equal(t, "kwok-dra", slice.Labels["dra.kwok.x-k8s.io/managed-by"])
				}
				for _, update := range preview.Update {
					require.Equal(t, test.generation, update.Slice.Spec.Pool.Generation)
				}
			})
		})
	}
}

// TestPoolThatIsTakenOverInPart: of a pool without labels a slice is gone, and made
// again before it is known that the others are there.
func TestPoolThatIsTakenOverInPart(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, template("a", "d", "{name: gpu}"), fakeNode("n", true))
		configtest.Replace(t, w.store, template("a", "d", twoSlices))
		w.wrote("create 2, patch 1")
		w.stop()
		list := w.list(t)
		w.remove(list[0].Name)
		w.edit(list[1].Name, func(slice *resourcev1.ResourceSlice) { slice.Labels = nil })
		w.start()
		time.Sleep(time.Minute)
		w.takeWrites()
		list = w.list(t)
		require.Len(t, list, 2)
		require.Greater(t, list[0].Spec.Pool.Generation, int64(2))
		require.Equal(t, list[0].Spec.Pool, list[1].Spec.Pool)
		w.wrote("")
	})
}
