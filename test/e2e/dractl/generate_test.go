package dractl

import (
	"fmt"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// keepsKeys: templates of the catalogue are added to a ConfigMap in whichever way
// it was made, and none of its keys goes. kubectl takes away the keys that it has
// applied before and that are left out now.
func (s *shell) keepsKeys() {
	s.Helper()
	for name, way := range map[string]string{
		"created":        "kubectl create -f mine.yaml",
		"applied":        "kubectl apply -f mine.yaml",
		"server-applied": "kubectl apply --server-side -f mine.yaml",
	} {
		mine := "# mine\napiVersion: dra.kwok.x-k8s.io/v1alpha1\nkind: ResourcePoolTemplate\nmetadata: {name: mine}\nspec: {driver: d, devices: [{name: a}]}\n"
		s.write("mine.yaml", fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: %s}, data: {mine.yaml: %q}}", name, mine))
		s.must(way)
		for _, profile := range []string{"nvidia-t4", "nvidia-l4", "nvidia-t4"} {
			s.must(fmt.Sprintf("kwok-dractl generate --profile %s --config-map default/%s | kubectl apply --server-side -f -", profile, name))
		}
		live, err := s.client.CoreV1().ConfigMaps("default").Get(s.Context(), name, metav1.GetOptions{})
		require.NoError(s, err)
		require.Len(s, live.Data, 3, name)
		require.Equal(s, mine, live.Data["mine.yaml"], name)
		require.Contains(s, live.Data, "nvidia-t4.yaml", name)
		require.Contains(s, live.Data, "nvidia-l4.yaml", name)
	}
	s.write("taken.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: taken}, data: {mine.yaml: '"+
		`{"apiVersion": "dra.kwok.x-k8s.io/v1alpha1", "kind": "ResourcePoolTemplate", "metadata": {"name": "nvidia-t4"}, "spec": {"driver": "d", "devices": [{"name": "a"}]}}`+"'}}")
	s.must("kubectl apply -f taken.yaml")
	r := s.run("kwok-dractl generate --profile nvidia-t4 --config-map default/taken")
	require.Equal(s, 2, r.code, r)
	require.Contains(s, r.errOut, `ConfigMap default/taken, key nvidia-t4.yaml, document 1: ResourcePoolTemplate "nvidia-t4": metadata.name: also in ConfigMap default/taken, key mine.yaml, document 1: rename one`)

	r = s.run("KUBECONFIG=/none kwok-dractl generate --profile nvidia-t4 --config-map default/applied")
	require.Zero(s, r.code, r)
	require.Contains(s, r.errOut, "--field-manager=kwok-dra-nvidia-t4")
	s.must("KUBECONFIG=/none kwok-dractl generate --profile cpu --config-map default/applied | kubectl apply --server-side --field-manager=kwok-dra-cpu -f -")
	live, err := s.client.CoreV1().ConfigMaps("default").Get(s.Context(), "applied", metav1.GetOptions{})
	require.NoError(s, err)
	require.Len(s, live.Data, 4)
}
