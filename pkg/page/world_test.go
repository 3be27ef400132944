package page

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/pkg/inventory"
)

// world is a page of nodes with one device each, in a bubble, where time does
// not pass by itself.
type world struct {
	t       *testing.T
	handler http.Handler
	feed    *feed

	mu    sync.Mutex
	nodes []string
	// claims are by node.
	claims  map[string]inventory.Claim
	changes uint64
	takes   int
}

func newWorld(t *testing.T, nodes ...string) *world {
	t.Helper()
	w := &world{t: t, nodes: nodes, claims: map[string]inventory.Claim{}}
	source := &inventory.Source{
		Nodes:       locked(w, func() []string { w.takes++; return w.nodes }),
		Slices:      locked(w, w.slices),
		Allocations: locked(w, w.allocations),
		Changes:     locked(w, func() uint64 { return w.changes }),
	}
	w.feed = newFeed(source)
	w.handler = w.feed.handler()
	return w
}

// locked is for what requests ask while tests change things.
func locked[T any](w *world, ask func() T) func() T {
	return func() T {
		w.mu.Lock()
		defer w.mu.Unlock()
		return ask()
	}
}

// change changes the fleet, and has pages told.
func (w *world) change(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
	w.changes++
}

// taken is how often an inventory was taken.
func (w *world) taken() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.takes
}

func (w *world) slices() []inventory.Slice {
	names := inventory.NamesOf([]resourcev1.Device{{Name: "gpu-0"}})
	var all []inventory.Slice
	for _, node := range w.nodes {
		all = append(all, inventory.Slice{Node: node, Driver: "d", Pool: node, Generation: 1, Count: 1, Devices: names})
	}
	return all
}

func (w *world) allocations() []inventory.Allocation {
	var all []inventory.Allocation
	for node, claim := range w.claims {
		all = append(all, inventory.Allocation{Driver: "d", Pool: node, Device: "gpu-0", Claim: claim})
	}
	return all
}

// allocate gives a node's device to a claim, or takes it back.
func (w *world) allocate(node, claim string) {
	w.change(func() {
		delete(w.claims, node)
		if claim != "" {
			w.claims[node] = inventory.Claim{Namespace: "default", Name: claim}
		}
	})
}

func (w *world) remove(node string) {
	w.change(func() { w.nodes = slices.DeleteFunc(w.nodes, func(name string) bool { return name == node }) })
}

func (w *world) get(path string, headers ...string) *httptest.ResponseRecorder {
	return w.getIn(w.t.Context(), path, headers...)
}

func (w *world) getIn(ctx context.Context, path string, headers ...string) *httptest.ResponseRecorder {
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	recorder := httptest.NewRecorder()
	w.handler.ServeHTTP(recorder, request)
	return recorder
}

// decoded is what a client gets of an answer.
type decoded struct {
	Revision, Since string
	Items           []struct {
		ID    string
		Pools []struct {
			Devices []struct{ Name, State string }
		}
	}
	Removed []string
}

// states are the items of an answer with the states of their devices.
func (d *decoded) states() map[string]string {
	states := map[string]string{}
	for _, item := range d.Items {
		states[item.ID] = fmt.Sprint(item.Pools[0].Devices[0].State)
	}
	return states
}

func (w *world) decode(recorder *httptest.ResponseRecorder) *decoded {
	w.t.Helper()
	require.Equal(w.t, http.StatusOK, recorder.Code)
	require.Equal(w.t, "application/json", recorder.Header().Get("Content-Type"))
	var body io.Reader = recorder.Body
	if recorder.Header().Get("Content-Encoding") == "gzip" {
		reader, err := gzip.NewReader(body)
		require.NoError(w.t, err)
		body = reader
	}
	answer := &decoded{}
	require.NoError(w.t, json.NewDecoder(body).Decode(answer))
	return answer
}

// since asks what is new, and returns the answer and how long it took.
func (w *world) since(revision string) (*decoded, time.Duration) {
	w.t.Helper()
	began := time.Now()
	answer := w.decode(w.get("/api/devices?since=" + revision))
	return answer, time.Since(began)
}

// inBubble runs a test in a bubble of its own.
func inBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}
