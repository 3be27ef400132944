package resourceslice

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/observe"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice/features"
	"github.com/kwok-dra/kwok-dra/internal/testing/configtest"
)

// objects are custom resources by name, each with its spec.
type objects map[string]string

// carrier has the custom resources that there are, by name.
type carrier struct {
	*config.Objects
	t   *testing.T
	all map[string]*unstructured.Unstructured
}

// take takes the next version of an object.
func (c *carrier) take(name, spec string) {
	c.t.Helper()
	c.all[name] = customResource(c.t, name, c.all[name].GetGeneration()+1, spec)
	c.replace()
}

// drop takes the end of an object.
func (c *carrier) drop(name string) {
	delete(c.all, name)
	c.replace()
}

func (c *carrier) replace() {
	c.Replace(c.t.Context(), func() []*unstructured.Unstructured { return slices.Collect(maps.Values(c.all)) })
}

func customResource(t *testing.T, name string, generation int64, spec string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{}}
	require.NoError(t, yaml.Unmarshal([]byte("spec: "+spec), &object.Object))
	object.SetAPIVersion("dra.kwok.x-k8s.io/v1alpha1")
	object.SetKind("ResourcePoolTemplate")
	object.SetName(name)
	object.SetGeneration(generation)
	return object
}

// begin starts a Publisher that knows only what the cluster has.
func (w *world) begin(o objects) *carrier {
	w.t.Helper()
	w.store = config.NewStore(config.ObjectsCarrier)
	c := &carrier{config.NewObjects(w.store, record.NewFakeRecorder(100), func() {}), w.t, map[string]*unstructured.Unstructured{}}
	for name, spec := range o {
		c.all[name] = customResource(w.t, name, 1, spec)
	}
	c.replace()
	w.start()
	return c
}

func newObjectsWorld(t *testing.T, o objects, nodes ...runtime.Object) *world {
	t.Helper()
	w := &world{server: newServer(nodes...), t: t}
	w.begin(o)
	return w
}

// TestRefusedDocumentRetiresNothing after a restart, until it is good or gone: not a
// pool of its own, nor its part of one, nor one that nodes share, also where it
// names another driver now. The others go on.
func TestRefusedDocumentRetiresNothing(t *testing.T) {
	const x, y, nic, port = "{driver: d, devices: [{name: x}]}", "{driver: d, devices: [{name: w}]}", "{driver: e, devices: [{name: nic}]}",
		"{driver: f, sharedWith: {allNodes: true}, devices: [{name: port}]}"
	const broken = "{driver: other, devices: []}"
	for name, test := range map[string]struct {
		object, good string
		// onNew is what a new node gets, on which nothing is held, and fixed what is
		// written when the object is good again, and gone when it goes.
		onNew, fixed, gone string
	}{
		"part of a pool": {"b", y, "create 2", "patch 1", "patch 1"},
		"own pool":       {"c", nic, "create 1", "create 1", "delete 1"},
		"shared pool":    {"s", port, "create 2", "", "delete 1"},
	} {
		for _, settle := range []string{"fixed", "gone"} {
			t.Run(name+" "+settle, func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					o := objects{"a": x, "b": y, "c": nic, "s": port}
					w := newObjectsWorld(t, o, fakeNode("n", true))
					w.wrote("create 3")
					w.stop()
					o[test.object] = broken
					carrier := w.begin(o)
					w.wrote("")
					w.addNode(fakeNode("m", true))
					w.wrote(test.onNew)
					require.Empty(t, w.events(), "the object tells, and not each node")
					if settle == "gone" {
						carrier.drop(test.object)
						w.wrote(test.gone)
						return
					}
					carrier.take(test.object, test.good)
					w.wrote(test.fixed)
				})
			})
		}
	}
}

// TestValidDocumentRetiresBesideARefusedOne: what a document in force made since the
// start is known to be its own.
func TestValidDocumentRetiresBesideARefusedOne(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newObjectsWorld(t, objects{"a": "{driver: d, devices: [{name: x}]}", "b": "{driver: e, devices: [{name: w}]}"}, fakeNode("n", true))
		w.wrote("create 2")
		w.stop()
		carrier := w.begin(objects{"a": "{driver: d, devices: [{name: x}]}", "b": "{driver: e, devices: []}"})
		w.wrote("")
		carrier.take("a", "{driver: d, devices: [{name: z}]}")
		w.wrote("patch 1")
		carrier.drop("a")
		w.wrote("delete 1")
		w.deleteNode("n")
		w.wrote("delete 1") // a node that goes takes all with it
	})
}

// TestSharedPoolIsRenamed: what was told of the pool of the former name, which has
// no slice, is forgotten.
func TestSharedPoolIsRenamed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, sharedTemplate("net", "  poolName: p\n", "{name: nic}"), fakeNode("a", false))
		configtest.Replace(t, w.store, sharedTemplate("net", "  poolName: p\n", "{name: nic, count: 2}"))
		w.wrote("")
		var told []string
		w.publisher.reporter.outcomes = func(of string, all map[string]Outcome) { told = append(told, fmt.Sprintf("%s %d", of, len(all))) }
		configtest.Replace(t, w.store, sharedTemplate("net", "  poolName: q\n", "{name: nic}"))
		w.wrote("")
		require.Contains(t, told, facts.SlicesKey{Driver: "d", Pool: "p"}.String()+" 0")
		require.Contains(t, told, facts.SlicesKey{Driver: "d", Pool: "q"}.String()+" 1")
	})
}

// TestDroppedFieldIsForgotten when the template does not use the field any more.
func TestDroppedFieldIsForgotten(t *testing.T) {
	t.Parallel()
	store := storeOf(t, template("a", "d", tainted)+template("b", "d", tainted))
	reporter := newReporter(Options{Recorder: record.NewFakeRecorder(10), Caches: &observe.Caches{}})
	told := func(template string) features.Dropped {
		return features.Dropped{Source: template, Field: &features.Fields[0]}
	}
	reporter.reportDropped(t.Context(), fakeNode("n", true), []features.Dropped{told("a"), told("b"), told("gone")})
	require.Len(t, reporter.dropped, 3)
	configtest.Replace(t, store, template("a", "d", "{name: x}")+template("b", "d", tainted))
	reporter.forgetUnused(store.Current().Templates)
	require.Equal(t, map[features.Dropped]bool{told("b"): true}, reporter.dropped)
	require.Equal(t, 1, testutil.CollectAndCount(reporter.metrics.dropped))
}

// TestRefusedDocumentBesideABadAnnotation: nor does it retire anything on a node
// whose annotation of taints cannot be followed.
func TestRefusedDocumentBesideABadAnnotation(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		o := objects{"a": "{driver: d, devices: [{name: x}]}", "b": "{driver: e, devices: [{name: w}]}"}
		w := newObjectsWorld(t, o, fakeNode("n", true))
		w.wrote("create 2")
		w.annotate("gpu")
		w.wrote("")
		w.stop()
		o["b"] = "{driver: e, devices: []}"
		carrier := w.begin(o)
		w.wrote("")
		carrier.drop("b")
		w.wrote("delete 1")
	})
}

// TestPublishedDevice: what is published is known also where no document in force
// makes it.
func TestPublishedDevice(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		o := objects{"a": "{driver: d, devices: [{name: x}]}", "s": "{driver: f, poolName: p, sharedWith: {allNodes: true}, devices: [{name: port}]}"}
		w := newObjectsWorld(t, o, fakeNode("n", true))
		w.wrote("create 2")
		w.stop()
		w.begin(objects{"a": "{driver: d, devices: []}", "s": "{driver: f, devices: []}"})
		w.wrote("")
		for device, want := range map[[3]string]bool{
			{"d", "n", "x"}: true, {"f", "p", "port"}: true, {"d", "n", "y"}: false, {"e", "n", "x"}: false, {"d", "p", "x"}: false,
		} {
			result := &resourcev1.DeviceRequestAllocationResult{Driver: device[0], Pool: device[1], Device: device[2]}
			require.Equal(t, want, w.caches.Slices.HaveDevice("n", result), "%v", device)
		}
		require.False(t, w.caches.Slices.HaveDevice("m", &resourcev1.DeviceRequestAllocationResult{Driver: "d", Pool: "n", Device: "x"}))
	})
}
