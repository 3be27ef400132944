package resourceslice

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/testing/configtest"
)

// TestSliceLabels: labels from templates come, are repaired and go, and others'
// stay. They are no reason for a new generation.
func TestSliceLabels(t *testing.T) {
	const managed, names = "dra.kwok.x-k8s.io/managed-by", "dra.kwok.x-k8s.io/slice-labels"
	labelled := func(labels string) string { return template("a", "d", twoSlices) + "  sliceLabels: {" + labels + "}\n" }
	edit := func(change func(slice *resourcev1.ResourceSlice)) func(w *world) {
		return func(w *world) {
			w.edit(w.list(w.t)[0].Name, change)
			synctest.Wait()
		}
	}
	documents := func(documents string) func(w *world) {
		return func(w *world) { configtest.Replace(w.t, w.store, documents) }
	}
	for name, test := range map[string]struct {
		do     func(w *world)
		wrote  string
		labels map[string]string
		names  string
	}{
		"nothing":           {func(*world) {}, "", map[string]string{"k": "v", "node": "n"}, "k,node"},
		"restart":           {func(w *world) { w.stop(); w.start() }, "", map[string]string{"k": "v", "node": "n"}, "k,node"},
		"another value":     {documents(labelled("k: w, node: other")), "patch 2", map[string]string{"k": "w", "node": "other"}, "k,node"},
		"another key":       {documents(labelled("l: v")), "patch 2", map[string]string{"l": "v"}, "l"},
		"none any more":     {documents(template("a", "d", twoSlices)), "patch 2", map[string]string{}, ""},
		"edited by hand":    {edit(func(slice *resourcev1.ResourceSlice) { slice.Labels["k"] = "w" }), "patch 1", map[string]string{"k": "v", "node": "n"}, "k,node"},
		"removed by hand":   {edit(func(slice *resourcev1.ResourceSlice) { delete(slice.Labels, "node") }), "patch 1", map[string]string{"k": "v", "node": "n"}, "k,node"},
		"annotation edited": {edit(func(slice *resourcev1.ResourceSlice) { delete(slice.Annotations, names) }), "patch 1", map[string]string{"k": "v", "node": "n"}, "k,node"},
		"another's":         {edit(func(slice *resourcev1.ResourceSlice) { slice.Labels["mine"] = "x" }), "", map[string]string{"k": "v", "node": "n", "mine": "x"}, "k,node"},
		"another's stays": {func(w *world) {
			edit(func(slice *resourcev1.ResourceSlice) { slice.Labels["mine"] = "x" })(w)
			configtest.Replace(w.t, w.store, template("a", "d", twoSlices))
		}, "patch 2", map[string]string{"mine": "x"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, labelled("k: v, node: '{{ .Node.metadata.name }}'"), fakeNode("n", true))
				w.wrote("create 2")
				test.do(w)
				w.wrote(test.wrote)
				slice := w.list(t)[0]
				test.labels[managed] = "kwok-dra"
				require.Equal(t, test.labels, slice.Labels)
				require.Equal(t, test.names, slice.Annotations[names])
				require.EqualValues(t, 1, slice.Spec.Pool.Generation)
				w.stop()
				w.start()
				w.wrote("")
			})
		})
	}
}
