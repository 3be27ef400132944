package overlay

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

func TestRender(t *testing.T) {
	t.Parallel()
	c, err := Copy(t.Context(), sidecar.Root(), t.TempDir(), "kwok", "kwok-general")
	require.NoError(t, err)
	for _, variant := range []Variant{
		{Overlay: "kwok", Tag: "v9.8.7"},
		{Overlay: "kwok-general", Components: []string{"replicas", "secure-serving"}, Tag: "v9.8.7"},
	} {
		objects, err := c.Render(variant)
		require.NoError(t, err)
		require.Equal(t, "CustomResourceDefinition", objects[0].Kind())
		ids := map[string]Object{}
		for _, object := range objects {
			ids[object.ID()] = object
		}
		require.Len(t, ids, len(objects))
		require.Contains(t, ids, "kwok.x-k8s.io/v1alpha1/Stage//pod-ready")
		require.Contains(t, ids, "rbac.authorization.k8s.io/v1/ClusterRole//kwok-dra")
		require.Equal(t, "kwok-dra/kwok-dra:v9.8.7", image(t, ids["apps/v1/Deployment/kube-system/kwok-controller"]))
	}
	_, err = c.Render(Variant{Overlay: "none", Tag: "v9.8.7"})
	require.ErrorContains(t, err, "render kustomize/none: ")
}

// image is that of the last container, as the API server would read it.
func image(t *testing.T, deployment Object) any {
	t.Helper()
	spec := deployment["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	containers := spec["containers"].([]any)
	return containers[len(containers)-1].(map[string]any)["image"]
}
