package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/yaml"
)

// objectsWorld is a carrier of custom resources, beside others.
type objectsWorld struct {
	*Objects
	t        *testing.T
	recorder *record.FakeRecorder
	all      []*unstructured.Unstructured
}

// newObjectsWorld has the custom resources beside files.
func newObjectsWorld(t *testing.T, files string) *objectsWorld {
	t.Helper()
	w := worldOf(t, NewStore("files", ObjectsCarrier))
	documents, err := Decode("files", []byte(files))
	require.NoError(t, err)
	require.NoError(t, w.store.Replace("files", documents))
	return w
}

func worldOf(t *testing.T, store *Store) *objectsWorld {
	t.Helper()
	w := &objectsWorld{t: t, recorder: record.NewFakeRecorder(100)}
	w.Objects = NewObjects(store, w.recorder, func() {})
	return w
}

// begin takes the objects that there are at the start.
func (w *objectsWorld) begin(objects ...*unstructured.Unstructured) {
	w.all = objects
	w.Replace(quiet(w.t), func() []*unstructured.Unstructured { return w.all })
}

// see takes a new version of an object.
func (w *objectsWorld) see(object *unstructured.Unstructured) {
	w.begin(append(w.without(object.GetKind(), object.GetName()), object)...)
}

// drop takes the end of an object.
func (w *objectsWorld) drop(kind, name string) {
	w.begin(w.without(kind, name)...)
}

func (w *objectsWorld) without(kind, name string) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(w.all), func(o *unstructured.Unstructured) bool { return o.GetKind() == kind && o.GetName() == name })
}

// custom makes an object of a spec in YAML.
func custom(t *testing.T, kind, name string, generation int64, spec string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{}}
	require.NoError(t, yaml.Unmarshal([]byte(spec), &object.Object))
	object.SetAPIVersion("dra.kwok.x-k8s.io/v1alpha1")
	object.SetKind(kind)
	object.SetName(name)
	object.SetUID("uid-of-" + "it")
	object.SetGeneration(generation)
	return object
}

func (w *objectsWorld) take(name string, generation int64, spec string) {
	w.t.Helper()
	w.see(custom(w.t, "ResourcePoolTemplate", name, generation, "spec: "+spec))
}

// inForce lists the templates in force with their drivers.
func (w *objectsWorld) inForce() []string {
	var all []string
	if set := w.store.Current(); set != nil {
		for _, t := range set.Templates {
			all = append(all, t.Name+" "+t.Driver)
		}
	}
	return all
}

func (w *objectsWorld) refusals() int {
	count := len(w.recorder.Events)
	for range count {
		<-w.recorder.Events
	}
	return count
}

func TestObjects(t *testing.T) {
	t.Parallel()
	w := newObjectsWorld(t, "")
	require.Nil(t, w.store.Current(), "as long as it is not known which there are")
	w.begin()
	require.NotNil(t, w.store.Current())
	w.take("a", 1, "{driver: d, devices: [{name: gpu}]}")
	w.take("b", 1, "{driver: e, devices: [{name: gpu}]}")
	require.Equal(t, []string{"a d", "b e"}, w.inForce())

	w.take("a", 2, "{driver: d2, devices: []}")
	require.Equal(t, []string{"a d", "b e"}, w.inForce(), "the last good version stays in force")
	require.ErrorContains(t, w.store.Acceptance("ResourcePoolTemplate")["a"].Err, "spec.devices")
	require.EqualValues(t, 2, w.store.Acceptance("ResourcePoolTemplate")["a"].Generation)
	require.NoError(t, w.store.Acceptance("ResourcePoolTemplate")["b"].Err)
	require.Equal(t, 1, w.refusals())

	w.take("a", 3, "{driver: d3, devices: [{name: gpu}]}")
	require.NoError(t, w.store.Acceptance("ResourcePoolTemplate")["a"].Err)
	w.drop("ResourcePoolTemplate", "b")
	require.Equal(t, []string{"a d3"}, w.inForce())
	require.Zero(t, w.refusals())
}

// TestObjectsThatContradict: of two objects with one shared pool, and of one
// with the name of a file's template, the later one waits until it can be taken.
func TestObjectsThatContradict(t *testing.T) {
	t.Parallel()
	const shared = "{driver: d, sharedWith: {allNodes: true}, poolName: p, devices: [{name: nic}]}"
	w := newObjectsWorld(t, document("ResourcePoolTemplate", "file", "{driver: f, devices: [{name: gpu}]}"))
	w.begin()
	w.take("a", 1, shared)
	w.take("b", 1, shared)
	w.take("file", 1, "{driver: other, devices: [{name: gpu}]}")
	require.Equal(t, []string{"file f", "a d"}, w.inForce())
	require.ErrorContains(t, w.store.Acceptance("ResourcePoolTemplate")["b"].Err, "template a makes the pool p of driver d already")
	require.ErrorContains(t, w.store.Acceptance("ResourcePoolTemplate")["file"].Err, "also in")
	require.Equal(t, 2, w.refusals())
	w.take("c", 1, "{driver: c, devices: [{name: gpu}]}")
	require.Zero(t, w.refusals(), "once is enough")

	w.drop("ResourcePoolTemplate", "a")
	require.Equal(t, []string{"file f", "b d", "c c"}, w.inForce())
	require.NoError(t, w.store.Acceptance("ResourcePoolTemplate")["b"].Err)
}

func document(kind, name, spec string) string {
	return "apiVersion: dra.kwok.x-k8s.io/v1alpha1\nkind: " + kind + "\nmetadata: {name: " + name + "}\nspec: " + spec + "\n"
}

// TestObjectsTogether: all are taken at once, and what is gone takes with it what it
// says.
func TestObjectsTogether(t *testing.T) {
	t.Parallel()
	w := newObjectsWorld(t, "")
	w.begin(custom(t, "ResourcePoolTemplate", "a", 1, "spec: {driver: d, devices: [{name: gpu}]}"),
		custom(t, "KwokDRAConfiguration", "k", 1, "spec: {podStatus: Faithful}"))
	require.True(t, w.store.Current().Faithful)
	require.Equal(t, []string{"a d"}, w.inForce())
	w.drop("KwokDRAConfiguration", "k")
	require.False(t, w.store.Current().Faithful)
	require.Equal(t, []string{"a d"}, w.inForce())
}

// TestObjectsOwnTheirPools: but documents that were copied from them do not.
func TestObjectsOwnTheirPools(t *testing.T) {
	t.Parallel()
	w := newObjectsWorld(t, strings.Replace(document("ResourcePoolTemplate", "file", "{driver: f, sharedWith: {allNodes: true}, devices: [{name: nic}]}"),
		"{name: file}", "{name: file, uid: u, resourceVersion: '7'}", 1))
	w.begin()
	w.take("a", 1, "{driver: d, sharedWith: {allNodes: true}, devices: [{name: nic}]}")
	for _, template := range w.store.Current().Shared() {
		pool, err := template.NewSharedPool()
		require.NoError(t, err)
		require.Equal(t, template.Name == "a", pool.Owner != nil)
	}
}

// TestObjectsIgnoreTheirStatus: what kwok-dra writes itself changes nothing.
func TestObjectsIgnoreTheirStatus(t *testing.T) {
	t.Parallel()
	w := newObjectsWorld(t, "")
	w.begin()
	w.take("a", 1, "{driver: d, devices: [{name: gpu}]}")
	before := w.store.Current()
	object := custom(t, "ResourcePoolTemplate", "a", 1, "spec: {driver: d, devices: [{name: gpu}]}\nstatus: {nodes: 3, slices: 3, devices: 24}")
	w.see(object)
	require.Same(t, before, w.store.Current())
	require.EqualValues(t, 3, w.store.Acceptance("ResourcePoolTemplate")["a"].Source.Object["status"].(map[string]any)["nodes"])
	require.NoError(t, w.store.Acceptance("ResourcePoolTemplate")["a"].Err)
}

// TestStatusOfALaterVersion: what another version of kwok-dra writes to the status of an object is no mistake in
// the object, also for a version that starts after it.
func TestStatusOfALaterVersion(t *testing.T) {
	t.Parallel()
	w := newObjectsWorld(t, "")
	w.begin()
	w.see(custom(t, "ResourcePoolTemplate", "a", 1, "spec: {driver: d, devices: [{name: gpu}]}\nstatus: {nodes: many, later: true}"))
	w.see(custom(t, "KwokDRAConfiguration", "b", 1, "spec: {podStatus: Faithful}\nstatus: {later: true}"))
	require.NoError(t, w.store.Acceptance("ResourcePoolTemplate")["a"].Err)
	require.Equal(t, []string{"a d"}, w.inForce())
	require.True(t, w.store.Current().Faithful)
	_, err := Decode("a.yaml", []byte("{apiVersion: dra.kwok.x-k8s.io/v1alpha1, kind: ResourcePoolTemplate, metadata: {name: a}, spec: {driver: d, devices: [{name: gpu}]}, status: {later: true}}"))
	require.NoError(t, err, "a copy")
}
