package overlay

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"

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
		require.Equal(t, "kwok-dra/kwok-dra:v9.8.7", imageOf(t, ids["apps/v1/Deployment/kube-system/kwok-controller"]))
	}
	_, err = c.Render(Variant{Overlay: "none", Tag: "v9.8.7"})
	require.ErrorContains(t, err, "render kustomize/none: ")
}

// imageOf is that of the last container, as the API server would read it.
func imageOf(t *testing.T, deployment Object) any {
	t.Helper()
	spec := deployment["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	containers := spec["containers"].([]any)
	return containers[len(containers)-1].(map[string]any)["image"]
}

// TestNetworkPolicy has the policy select the Pods of the Deployment, and have a rule for each
// of their ports: one that is left out is shut.
func TestNetworkPolicy(t *testing.T) {
	t.Parallel()
	c, err := Copy(t.Context(), sidecar.Root(), t.TempDir(), "kwok")
	require.NoError(t, err)
	objects, err := c.Render(Variant{Overlay: "kwok", Components: []string{"network-policy"}, Tag: "v9.8.7"})
	require.NoError(t, err)
	var policy networkingv1.NetworkPolicy
	var deployment appsv1.Deployment
	for _, object := range objects {
		for kind, into := range map[string]any{"NetworkPolicy": &policy, "Deployment": &deployment} {
			if object.Kind() == kind {
				encoded, err := yaml.Marshal(object)
				require.NoError(t, err)
				require.NoError(t, yaml.UnmarshalStrict(encoded, into))
			}
		}
	}
	require.Equal(t, deployment.Namespace, policy.Namespace)
	require.NotEmpty(t, policy.Spec.PodSelector.MatchLabels)
	require.Subset(t, deployment.Spec.Template.Labels, policy.Spec.PodSelector.MatchLabels)
	from := map[int]int{}
	for _, rule := range policy.Spec.Ingress {
		for _, port := range rule.Ports {
			from[port.Port.IntValue()] = len(rule.From)
		}
	}
	ports := map[int]int{}
	for _, container := range deployment.Spec.Template.Spec.Containers {
		for _, port := range container.Ports {
			ports[int(port.ContainerPort)] = 1 // whoever the policy names
		}
		if probe := container.LivenessProbe.HTTPGet; probe.Port.IntValue() != 0 {
			ports[probe.Port.IntValue()] = 0 // anyone
		}
	}
	require.Equal(t, ports, from)
}
