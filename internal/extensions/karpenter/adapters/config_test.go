package adapters_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/extensions/karpenter/adapters"
	"github.com/kwok-dra/kwok-dra/internal/testing/runtest"
)

const mappings = `
driver: gpu.example.com/v2
mappings:
- name: t4
  nodeSelector: {matchLabels: {a: b}}
  resourceSlice: {devices: [{name: t4, count: 2, attributes: {compute-capability: "7.5"}}]}
`

var adaptedName = types.NamespacedName{Namespace: "karpenter", Name: "dra-kwok-configmap"}

// cluster is a ConfigMap that is watched beside files, in a bubble.
type cluster struct {
	t        *testing.T
	client   *fake.Clientset
	store    *config.Store
	recorder *record.FakeRecorder
}

// watching watches a ConfigMap with the data, or none.
func watching(t *testing.T, data ...map[string]string) *cluster {
	t.Helper()
	c := &cluster{t: t, client: fake.NewClientset(), store: config.NewStore(config.FilesCarrier, config.ConfigMapCarrier(adaptedName)), recorder: record.NewFakeRecorder(100)}
	file, err := config.Decode("file", []byte("apiVersion: dra.kwok.x-k8s.io/v1alpha1\nkind: ResourcePoolTemplate\nmetadata: {name: file}\nspec: {driver: d, devices: [{name: gpu}]}\n"))
	require.NoError(t, err)
	require.NoError(t, c.store.Replace(config.FilesCarrier, file))
	for _, one := range data {
		_, err := c.client.CoreV1().ConfigMaps(adaptedName.Namespace).Create(runtest.QuietContext(t), adaptedMap(one), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	configMap := config.NewAdaptedConfigMap(c.client, adaptedName, c.store, c.recorder, adapters.DRAKwokConfigMap)
	t.Cleanup(synctest.Wait)
	runtest.UntilEnd(runtest.QuietContext(t), t, configMap.Run)
	synctest.Wait()
	return c
}

// inForce names the templates in force.
func inForce(store *config.Store) []string {
	var names []string
	if set := store.Current(); set != nil {
		for _, t := range set.Templates {
			names = append(names, t.Name)
		}
	}
	return names
}

func takeEvents(recorder *record.FakeRecorder) []string {
	events := []string{}
	for len(recorder.Events) > 0 {
		events = append(events, <-recorder.Events)
	}
	return events
}

func adaptedMap(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: adaptedName.Namespace, Name: adaptedName.Name, UID: "uid"}, Data: data}
}

func (c *cluster) adapt(data map[string]string) {
	c.t.Helper()
	_, err := c.client.CoreV1().ConfigMaps(adaptedName.Namespace).Update(runtest.QuietContext(c.t), adaptedMap(data), metav1.UpdateOptions{})
	require.NoError(c.t, err)
	synctest.Wait()
}

func TestAdaptedConfigMap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := watching(t, map[string]string{"config.yaml": mappings})
		set := c.store.Current()
		require.Equal(t, []string{"file", "dra-kwok-configmap.t4"}, inForce(c.store))
		require.Equal(t, devices.Origin{Document: "ConfigMap karpenter/dra-kwok-configmap", Part: "template dra-kwok-configmap.t4", Carrier: &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "karpenter", Name: "dra-kwok-configmap", UID: "uid"}}, set.Templates[1].Origin)
		require.Len(t, set.Classes, 1)
		require.Equal(t, "gpu.example.com.v2", set.Classes[0].Name)
		require.Equal(t, &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "karpenter", Name: "dra-kwok-configmap", UID: "uid"}, set.Classes[0].For)
		events := takeEvents(c.recorder)
		require.Len(t, events, 1, "one for all that is changed")
		require.True(t, strings.HasPrefix(events[0], "Warning Normalized not taken as it is written: "), events[0])
		require.Contains(t, events[0], `"gpu.example.com.v2"`)
		require.Contains(t, events[0], `"compute_capability"`)

		c.adapt(map[string]string{"config.yaml": strings.Replace(mappings, "count: 2", "count: 3", 1)})
		require.Empty(t, takeEvents(c.recorder), "nothing else is changed")
		c.adapt(map[string]string{"config.yaml": strings.Replace(mappings, "count: 2", "count: -1", 1)})
		require.Len(t, c.store.Current().Templates, 2, "the last good version stays in force")
		require.Contains(t, takeEvents(c.recorder)[0], "Warning InvalidConfiguration ConfigMap karpenter/dra-kwok-configmap, key config.yaml: mappings[0].resourceSlice.devices[0].count: ")
		c.adapt(map[string]string{"config.yml": mappings})
		require.Contains(t, takeEvents(c.recorder)[0], "ConfigMap karpenter/dra-kwok-configmap: data: Required value: the key config.yaml")
		c.adapt(nil)
		require.Equal(t, []string{"file"}, inForce(c.store))
		require.Empty(t, c.store.Current().Classes)
	})
}

// TestUnreadableAdaptedConfigMap: what cannot be read is not nothing.
func TestUnreadableAdaptedConfigMap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := watching(t, map[string]string{"config.yaml": mappings})
		require.Len(t, takeEvents(c.recorder), 1)
		unreadable := adaptedMap(nil)
		unreadable.BinaryData = map[string][]byte{"config.yaml": []byte("# \xfc\n" + mappings)}
		_, err := c.client.CoreV1().ConfigMaps(adaptedName.Namespace).Update(runtest.QuietContext(t), unreadable, metav1.UpdateOptions{})
		require.NoError(t, err)
		synctest.Wait()
		require.Len(t, c.store.Current().Templates, 2)
		events := takeEvents(c.recorder)
		require.Len(t, events, 1)
		require.Contains(t, events[0], "Warning InvalidConfiguration ConfigMap karpenter/dra-kwok-configmap, key config.yaml: line 1 of the document: the byte 0xfc at offset 2 is not UTF-8")
	})
}

// TestAdaptedConfigMapThatIsAbsent configures nothing, and holds up nothing.
func TestAdaptedConfigMapThatIsAbsent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := watching(t)
		require.Equal(t, []string{"file"}, inForce(c.store))
		require.Empty(t, takeEvents(c.recorder))
		require.NoError(t, testutil.CollectAndCompare(c.store, strings.NewReader(`
# HELP kwok_dra_config_last_reload_successful 1 if the newest version of the configuration is in force, 0 if it was refused, by carrier.
# TYPE kwok_dra_config_last_reload_successful gauge
kwok_dra_config_last_reload_successful{carrier="ConfigMap karpenter/dra-kwok-configmap"} 1
kwok_dra_config_last_reload_successful{carrier="files"} 1
`), "kwok_dra_config_last_reload_successful"))
		configMaps := c.client.CoreV1().ConfigMaps(adaptedName.Namespace)
		for range 2 {
			_, err := configMaps.Create(runtest.QuietContext(t), adaptedMap(map[string]string{"config.yaml": mappings}), metav1.CreateOptions{})
			require.NoError(t, err)
			synctest.Wait()
			require.Len(t, c.store.Current().Templates, 2)
			require.Len(t, takeEvents(c.recorder), 1, "a new ConfigMap is told of anew")
			require.NoError(t, configMaps.Delete(runtest.QuietContext(t), adaptedName.Name, metav1.DeleteOptions{}))
			synctest.Wait()
			require.Equal(t, []string{"file"}, inForce(c.store))
		}
	})
}

// TestAdaptedConfigMapThatIsInvalidAtStart holds up everything, as kwok-dra's own
// does.
func TestAdaptedConfigMapThatIsInvalidAtStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := watching(t, map[string]string{"config.yaml": "driver: ["})
		require.Nil(t, c.store.Current(), "nothing may be retired on the word of a broken document")
	})
}

// foreign makes an object of Karpenter.
func foreign(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{}}
	require.NoError(t, yaml.Unmarshal([]byte(text), &object.Object))
	object.SetUID(types.UID(object.GetName()))
	return object
}

func draConfig(t *testing.T, name string, generation int64, devices string) *unstructured.Unstructured {
	t.Helper()
	object := foreign(t, `
apiVersion: test.karpenter.sh/v1alpha1
kind: DRAConfig
metadata: {name: `+name+`, creationTimestamp: "2026-01-02T03:04:05Z"}
spec:
  driver: gpu.example.com
  pools:
  - {name: p, nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}], resourceSlices: [{devices: [`+devices+`]}]}
`)
	object.SetGeneration(generation)
	return object
}

// objects are custom resources as they come and go.
type objects struct {
	*config.Objects
	t        *testing.T
	store    *config.Store
	recorder *record.FakeRecorder
	all      map[string]*unstructured.Unstructured
}

func newObjects(t *testing.T) *objects {
	t.Helper()
	o := &objects{t: t, store: config.NewStore(config.ObjectsCarrier), recorder: record.NewFakeRecorder(100), all: map[string]*unstructured.Unstructured{}}
	o.Objects = config.NewObjects(o.store, o.recorder, func() {})
	return o
}

// see takes new versions of objects.
func (o *objects) see(objects ...*unstructured.Unstructured) {
	for _, object := range objects {
		o.all[object.GetKind()+object.GetName()] = object
	}
	o.Replace(runtest.QuietContext(o.t), func() []*unstructured.Unstructured { return slices.Collect(maps.Values(o.all)) })
}

// TestDRAConfigs: each stands for itself.
func TestDRAConfigs(t *testing.T) {
	t.Parallel()
	w := newObjects(t)
	w.see()
	w.see(draConfig(t, "a", 1, "{name: gpu-0}"))
	w.see(draConfig(t, "b", 1, "{name: gpu_0}"))
	require.Equal(t, []string{"draconfig-a.p"}, inForce(w.store))
	origin := w.store.Current().Templates[0].Origin
	require.Equal(t, "DRAConfig a", origin.Document)
	require.Equal(t, "pool p", origin.Part)
	require.True(t, origin.Created.Equal(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))
	all := w.store.Acceptance(adapters.DRAConfigKind)
	require.NoError(t, all["a"].Err)
	require.Equal(t, []string{"draconfig-a.p"}, all["a"].Templates)
	require.ErrorContains(t, all["b"].Err, "DRAConfig b: spec.pools[0].resourceSlices[0].devices[0].name")
	require.Empty(t, all["b"].Templates)
	require.Len(t, takeEvents(w.recorder), 1)
	require.Empty(t, w.store.Acceptance("ResourcePoolTemplate"))

	w.see(draConfig(t, "a", 2, "{name: 7}"))
	require.Equal(t, []string{"draconfig-a.p"}, inForce(w.store), "the last good version stays in force")
	require.Equal(t, []string{"draconfig-a.p"}, w.store.Acceptance(adapters.DRAConfigKind)["a"].Templates)
	clear(w.all)
	w.see()
	require.Empty(t, inForce(w.store))
}

// TestNodeOverlays: the annotation counts as the spec does, though the API server
// does not take it for another generation.
func TestNodeOverlays(t *testing.T) {
	t.Parallel()
	take := func(w *objects, annotation string) {
		object := foreign(t, "{apiVersion: karpenter.sh/v1alpha1, kind: NodeOverlay, metadata: {name: a, generation: 1}, spec: {requirements: []}}")
		object.SetAnnotations(map[string]string{"dra.kwok.x-k8s.io/resource-slices": annotation})
		w.see(object)
	}
	w := newObjects(t)
	w.see()
	take(w, "[]")
	require.Empty(t, inForce(w.store))
	take(w, "[{spec: {driver: d.example.com, devices: [{name: gpu}]}}]")
	require.Len(t, inForce(w.store), 1)
	before := w.store.Current()
	take(w, "[{spec: {driver: d.example.com, devices: [{name: gpu}]}}]")
	require.Same(t, before, w.store.Current())
	require.Empty(t, takeEvents(w.recorder))
	take(w, "[{spec: {driver: d.example.com/v2, devices: [{name: gpu}]}}]")
	require.Contains(t, <-w.recorder.Events, "Warning Normalized")
	take(w, "{")
	require.Contains(t, <-w.recorder.Events, "Warning InvalidConfiguration NodeOverlay a: ")
	require.Len(t, inForce(w.store), 1)
}

func TestKinds(t *testing.T) {
	t.Parallel()
	kinds, err := adapters.Kinds("NodeOverlay", "DRAConfig")
	require.NoError(t, err)
	require.Equal(t, "nodeoverlays", kinds[0].Resource.Resource)
	_, err = adapters.Kinds("draconfig")
	require.ErrorContains(t, err, `unknown kind "draconfig": must be DRAConfig or NodeOverlay; did you mean DRAConfig?`)
}

// TestForeignKindInAFile: the program that reads a kind says how to have it read.
func TestForeignKindInAFile(t *testing.T) {
	t.Parallel()
	_, err := config.Decode("test", []byte("apiVersion: test.karpenter.sh/v1alpha1\nkind: DRAConfig"))
	require.EqualError(t, err, "test, document 1: kind: this is a DRAConfig: kubectl apply it, and have it read with --adapters DRAConfig; kwok-dra reads ResourcePoolTemplate and KwokDRAConfiguration here")
}
