package page

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestKinds: what devices are is said once for all nodes of a kind, and not again.
func TestKinds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, "a", "b")
		w.products["a"], w.products["b"] = "Fast GPU", "Fast GPU"
		all := w.decode(w.get("/api/devices"))
		require.Len(t, all.Kinds, 1)
		require.Equal(t, all.Kinds[0].ID, all.Items[0].Pools[0].Kind)
		require.Equal(t, all.Kinds[0].ID, all.Items[1].Pools[0].Kind)

		w.allocate("a", "c")
		changed, _ := w.since(all.Revision)
		require.Empty(t, changed.Kinds, "the viewer knows it")

		w.change(func() { w.products["b"] = "Other GPU" })
		changed, _ = w.since(changed.Revision)
		require.Len(t, changed.Kinds, 1)
		require.Equal(t, changed.Kinds[0].ID, changed.Items[0].Pools[0].Kind)
		changed, _ = w.since(all.Revision)
		require.Len(t, changed.Kinds, 1)

		w.change(func() { w.products["b"] = "Fast GPU" })
		back, _ := w.since(changed.Revision)
		require.Equal(t, all.Kinds[0].ID, back.Items[0].Pools[0].Kind)
		require.Empty(t, back.Kinds)
	})
}

func TestDevice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a", "b", "lost", "down")
	defer w.feed.forget.Stop()
	w.products["b"] = "Fast GPU"
	response := w.get("/api/device?driver=d&pool=b&device=gpu-0")
	require.Equal(t, http.StatusOK, response.Code)
	require.JSONEq(t, `{"product": "Fast GPU", "uuid": "GPU-b", "attributes": {"productName": "Fast GPU", "uuid": "GPU-b"}}`, response.Body.String())
	for query, code := range map[string]int{
		"driver=d&pool=b&device=gpu-1":    http.StatusNotFound,
		"driver=x&pool=b&device=gpu-0":    http.StatusNotFound,
		"driver=d&pool=x&device=gpu-0":    http.StatusNotFound,
		"":                                http.StatusNotFound,
		"driver=d&pool=lost&device=gpu-0": http.StatusNotFound,
		"driver=d&pool=down&device=gpu-0": http.StatusBadGateway,
	} {
		require.Equal(t, code, w.get("/api/device?"+query).Code, query)
	}
}

func TestLabels(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a", "b")
	defer w.feed.forget.Stop()
	require.JSONEq(t, `{"values": {"z": ["a", "b"]}}`, w.get("/api/labels?name=zone").Body.String())
	require.JSONEq(t, `{"values": {"a": ["a"], "b": ["b"]}}`, w.get("/api/labels?name=name").Body.String())
	require.JSONEq(t, `{"values": {}}`, w.get("/api/labels?name=other").Body.String())
	require.JSONEq(t, `{"names": ["name", "zone"]}`, w.get("/api/labels").Body.String())
	w.nodes = nil
	require.JSONEq(t, `{"names": []}`, w.get("/api/labels").Body.String())
}
