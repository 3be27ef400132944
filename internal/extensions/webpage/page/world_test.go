package page

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/testing/runtest"
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
	claims map[string]inventory.Claim
	// products are by node.
	products map[string]string
	waiting  []WaitingPod
	// retired are nodes whose slices are gone, and rules and unseen are of DeviceTaintRules.
	retired map[string]bool
	rules   []inventory.TaintRule
	// notReady are nodes that are not ready.
	notReady map[string]bool
	unseen   string
	changes  uint64
	takes    int
}

func newWorld(t *testing.T, nodes ...string) *world {
	t.Helper()
	w := &world{t: t, nodes: nodes, claims: map[string]inventory.Claim{}, retired: map[string]bool{}, products: map[string]string{}}
	source := &inventory.Source{
		Nodes:       locked(w, func() []string { w.takes++; return w.nodes }),
		IsNodeReady: func(node string) bool { return locked(w, func() bool { return !w.notReady[node] })() },
		Slices:      locked(w, w.slices),
		Allocations: locked(w, w.allocations),
		TaintRules: func() ([]inventory.TaintRule, string) {
			return locked(w, func() []inventory.TaintRule { return w.rules })(), locked(w, func() string { return w.unseen })()
		},
		Changes: locked(w, func() uint64 { return w.changes }),
	}
	w.feed = newFeed(source)
	w.handler = w.feed.newHandler(&Options{
		Source: source, Labels: w.labels, Slice: w.slice,
		Waiting: func(context.Context) ([]WaitingPod, error) { return w.waiting, nil },
	})
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
	var all []inventory.Slice
	for _, node := range w.nodes {
		if w.retired[node] {
			continue
		}
		spec := w.spec(node)
		all = append(all, inventory.Slice{
			Node: node, Driver: "d", Pool: node, Name: "slice-" + node, Generation: 1, Count: 1,
			Devices: facts.NamesOf(spec.Devices), Facts: inventory.FactsOf(spec),
		})
	}
	return all
}

// spec is what the API server has.
func (w *world) spec(node string) *resourcev1.ResourceSliceSpec {
	gpu := resourcev1.Device{Name: "gpu-0"}
	if product := w.products[node]; product != "" {
		gpu.Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"productName": {StringValue: &product}, "uuid": {StringValue: new("GPU-" + node)}}
	}
	return &resourcev1.ResourceSliceSpec{Driver: "d", NodeName: &node, Devices: []resourcev1.Device{gpu}}
}

// slice answers as the API server does, which does not know the node "lost" any more.
func (w *world) slice(_ context.Context, name string) (*resourcev1.ResourceSlice, error) {
	node := strings.TrimPrefix(name, "slice-")
	switch node {
	case "lost":
		return nil, apierrors.NewNotFound(resourcev1.Resource("resourceslices"), name)
	case "down":
		return nil, errors.New("connection refused")
	}
	return &resourcev1.ResourceSlice{Spec: *w.spec(node)}, nil
}

// labels are those of the nodes: a zone, and their names.
func (w *world) labels(yield func(string, map[string]string) bool) {
	for _, node := range w.nodes {
		if !yield(node, map[string]string{"zone": "z", "name": node}) {
			return
		}
	}
}

func (w *world) allocations() []inventory.Allocation {
	var all []inventory.Allocation
	for node, claim := range w.claims {
		all = append(all, inventory.Allocation{Driver: "d", Pool: node, Device: "gpu-0", Node: node, Covered: true, Claim: claim})
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
			Kind    string
			Devices []struct{ Name, State string }
		}
	}
	Kinds   []struct{ ID string }
	Removed []string
	Gone    []struct{ Node, Pool, Name, State string }
	Unseen  string
}

// states are the items of an answer with the states of their devices.
func (d *decoded) states() map[string]string {
	states := map[string]string{}
	for _, item := range d.Items {
		states[item.ID] = ""
		if len(item.Pools) > 0 {
			states[item.ID] = item.Pools[0].Devices[0].State
		}
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
var inBubble = runtest.InBubble
