package config

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/pkg/devices"
)

const mappings = `
driver: gpu.example.com/v2
mappings:
- name: t4
  nodeSelector: {matchLabels: {a: b}}
  resourceSlice: {devices: [{name: t4, count: 2, attributes: {compute-capability: "7.5"}}]}
`

var adaptedName = types.NamespacedName{Namespace: "karpenter", Name: "dra-kwok-configmap"}

// watchingAdapted is a ConfigMap of mappings that is watched beside files.
func watchingAdapted(t *testing.T, data ...map[string]string) *cluster {
	t.Helper()
	carriers := []string{FilesCarrier, ConfigMapCarrier(adaptedName)}
	c := &cluster{t: t, client: fake.NewClientset(), store: NewStore(carriers...), recorder: record.NewFakeRecorder(100)}
	require.NoError(t, c.store.Replace(FilesCarrier, decode(t, template("file"))))
	for _, one := range data {
		_, err := c.client.CoreV1().ConfigMaps(adaptedName.Namespace).Create(quiet(t), adaptedMap(one), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	configMap := NewAdaptedConfigMap(c.client, adaptedName, c.store, c.recorder)
	c.run(configMap)
	return c
}

func adaptedMap(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: adaptedName.Namespace, Name: adaptedName.Name, UID: "uid"}, Data: data}
}

func (c *cluster) adapt(data map[string]string) {
	c.t.Helper()
	_, err := c.client.CoreV1().ConfigMaps(adaptedName.Namespace).Update(quiet(c.t), adaptedMap(data), metav1.UpdateOptions{})
	require.NoError(c.t, err)
	synctest.Wait()
}

func TestAdaptedConfigMap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := watchingAdapted(t, map[string]string{"config.yaml": mappings})
		set := c.store.Current()
		require.Equal(t, []string{"file", "dra-kwok-configmap.t4"}, setNames(set))
		require.Equal(t, devices.Origin{Document: "ConfigMap karpenter/dra-kwok-configmap", Part: "template dra-kwok-configmap.t4", Carrier: &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "karpenter", Name: "dra-kwok-configmap", UID: "uid"}}, set.Templates[1].Origin)
		require.Len(t, set.Classes, 1)
		require.Equal(t, "gpu.example.com.v2", set.Classes[0].Name)
		require.Equal(t, &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "karpenter", Name: "dra-kwok-configmap", UID: "uid"}, set.Classes[0].For)
		events := c.events()
		require.Len(t, events, 1, "one for all that is changed")
		require.True(t, strings.HasPrefix(events[0], "Warning Normalized not taken as it is written: "), events[0])
		require.Contains(t, events[0], `"gpu.example.com.v2"`)
		require.Contains(t, events[0], `"compute_capability"`)

		c.adapt(map[string]string{"config.yaml": strings.Replace(mappings, "count: 2", "count: 3", 1)})
		require.Empty(t, c.events(), "nothing else is changed")
		c.adapt(map[string]string{"config.yaml": strings.Replace(mappings, "count: 2", "count: -1", 1)})
		require.Len(t, c.store.Current().Templates, 2, "the last good version stays in force")
		require.Contains(t, c.events()[0], "Warning InvalidConfiguration ConfigMap karpenter/dra-kwok-configmap, key config.yaml: mappings[0].resourceSlice.devices[0].count: ")
		c.adapt(map[string]string{"config.yml": mappings})
		require.Contains(t, c.events()[0], "ConfigMap karpenter/dra-kwok-configmap: data: Required value: the key config.yaml")
		c.adapt(nil)
		require.Equal(t, []string{"file"}, setNames(c.store.Current()))
		require.Empty(t, c.store.Current().Classes)
	})
}

// TestUnreadableAdaptedConfigMap: what cannot be read is not nothing.
func TestUnreadableAdaptedConfigMap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := watchingAdapted(t, map[string]string{"config.yaml": mappings})
		require.Len(t, c.events(), 1)
		unreadable := adaptedMap(nil)
		unreadable.BinaryData = map[string][]byte{"config.yaml": []byte("# \xfc\n" + mappings)}
		_, err := c.client.CoreV1().ConfigMaps(adaptedName.Namespace).Update(quiet(t), unreadable, metav1.UpdateOptions{})
		require.NoError(t, err)
		synctest.Wait()
		require.Len(t, c.store.Current().Templates, 2)
		events := c.events()
		require.Len(t, events, 1)
		require.Contains(t, events[0], "Warning InvalidConfiguration ConfigMap karpenter/dra-kwok-configmap, key config.yaml: line 1 of the document: the byte 0xfc at offset 2 is not UTF-8")
	})
}

// TestAdaptedConfigMapThatIsAbsent configures nothing, and holds up nothing.
func TestAdaptedConfigMapThatIsAbsent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := watchingAdapted(t)
		require.Equal(t, []string{"file"}, setNames(c.store.Current()))
		requireMetrics(t, c.store, ConfigMapCarrier(adaptedName), 0, 1)
		configMaps := c.client.CoreV1().ConfigMaps(adaptedName.Namespace)
		for range 2 {
			_, err := configMaps.Create(quiet(t), adaptedMap(map[string]string{"config.yaml": mappings}), metav1.CreateOptions{})
			require.NoError(t, err)
			synctest.Wait()
			require.Len(t, c.store.Current().Templates, 2)
			require.Len(t, c.events(), 1, "a new ConfigMap is told of anew")
			require.NoError(t, configMaps.Delete(quiet(t), adaptedName.Name, metav1.DeleteOptions{}))
			synctest.Wait()
			require.Equal(t, []string{"file"}, setNames(c.store.Current()))
		}
	})
}

// TestAdaptedConfigMapThatIsInvalidAtStart holds up everything, as kwok-dra's own
// does.
func TestAdaptedConfigMapThatIsInvalidAtStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := watchingAdapted(t, map[string]string{"config.yaml": "driver: ["})
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

// TestDRAConfigs: each stands for itself.
func TestDRAConfigs(t *testing.T) {
	t.Parallel()
	w := newObjectsWorld(t, "")
	w.begin()
	w.see(draConfig(t, "a", 1, "{name: gpu-0}"))
	w.see(draConfig(t, "b", 1, "{name: gpu_0}"))
	require.Equal(t, []string{"draconfig-a.p gpu.example.com"}, w.inForce())
	origin := w.store.Current().Templates[0].Origin
	require.Equal(t, "DRAConfig a", origin.Document)
	require.Equal(t, "pool p", origin.Part)
	require.True(t, origin.Created.Equal(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))
	all := w.store.Acceptance(DRAConfigKind)
	require.NoError(t, all["a"].Err)
	require.Equal(t, []string{"draconfig-a.p"}, all["a"].Templates)
	require.ErrorContains(t, all["b"].Err, "DRAConfig b: spec.pools[0].resourceSlices[0].devices[0].name")
	require.Empty(t, all["b"].Templates)
	require.Equal(t, 1, w.refusals())
	require.Empty(t, w.store.Acceptance("ResourcePoolTemplate"))

	w.see(draConfig(t, "a", 2, "{name: 7}"))
	require.Equal(t, []string{"draconfig-a.p gpu.example.com"}, w.inForce(), "the last good version stays in force")
	require.Equal(t, []string{"draconfig-a.p"}, w.store.Acceptance(DRAConfigKind)["a"].Templates)
	w.begin()
	require.Empty(t, w.inForce())
}

// TestNodeOverlays: the annotation counts as the spec does, though the API server
// does not take it for another generation.
func TestNodeOverlays(t *testing.T) {
	t.Parallel()
	take := func(w *objectsWorld, annotation string) {
		object := foreign(t, "{apiVersion: karpenter.sh/v1alpha1, kind: NodeOverlay, metadata: {name: a, generation: 1}, spec: {requirements: []}}")
		object.SetAnnotations(map[string]string{"dra.kwok.x-k8s.io/resource-slices": annotation})
		w.see(object)
	}
	w := newObjectsWorld(t, "")
	w.begin()
	take(w, "[]")
	require.Empty(t, w.inForce())
	take(w, "[{spec: {driver: d.example.com, devices: [{name: gpu}]}}]")
	require.Len(t, w.inForce(), 1)
	before := w.store.Current()
	take(w, "[{spec: {driver: d.example.com, devices: [{name: gpu}]}}]")
	require.Same(t, before, w.store.Current())
	require.Zero(t, w.refusals())
	take(w, "[{spec: {driver: d.example.com/v2, devices: [{name: gpu}]}}]")
	require.Contains(t, <-w.recorder.Events, "Warning Normalized")
	take(w, "{")
	require.Contains(t, <-w.recorder.Events, "Warning InvalidConfiguration NodeOverlay a: ")
	require.Len(t, w.inForce(), 1)
}

func TestAdaptedKinds(t *testing.T) {
	t.Parallel()
	kinds, err := AdaptedKinds("NodeOverlay", "DRAConfig")
	require.NoError(t, err)
	require.Equal(t, "nodeoverlays", kinds[0].Resource.Resource)
	_, err = AdaptedKinds("draconfig")
	require.ErrorContains(t, err, `unknown kind "draconfig": must be DRAConfig or NodeOverlay; did you mean DRAConfig?`)
}
