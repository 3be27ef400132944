package config

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestSnapshot: the ConfigMap wins over custom resources, and what is refused holds up nothing else.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	template := func(name, driver string) string {
		return "{apiVersion: dra.kwok.x-k8s.io/v1alpha1, kind: ResourcePoolTemplate, metadata: {name: " + name + "}, spec: {driver: " + driver + ", devices: [{name: gpu}]}}"
	}
	object := func(text string) *unstructured.Unstructured {
		made := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(text), &made.Object))
		return made
	}
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}, Data: map[string]string{"a.yaml": template("a", "one")}}
	objects := []*unstructured.Unstructured{object(template("a", "two")), object(template("b", "three")), object(template("broken", "'No driver'"))}

	set, refused := Snapshot(configMap, objects)
	require.Len(t, set.Templates, 2)
	require.True(t, set.HasDriver("one") && set.HasDriver("three"))
	require.Len(t, refused, 2)
	require.ErrorContains(t, refused[0], `"a"`)
	require.ErrorContains(t, refused[1], `"broken"`)

	set, refused = Snapshot(nil, objects[:2])
	require.Empty(t, refused)
	require.True(t, set.HasDriver("two"))

	configMap.Data["a.yaml"] = template("a", "'No driver'")
	set, refused = Snapshot(configMap, nil)
	require.Len(t, refused, 1)
	require.Empty(t, set.Unsettled, "nothing of a refused ConfigMap was in force before")

	set, refused = Snapshot(nil, nil)
	require.Empty(t, refused)
	require.Empty(t, set.Templates)
}
