package simulator

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestRead reads a cluster that has DeviceTaintRules in an older version.
func TestRead(t *testing.T) {
	t.Parallel()
	world := gpus(2, 1)
	named := func(name, node string, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase}}
	}
	leaving := named("leaving", "", corev1.PodPending)
	leaving.DeletionTimestamp, leaving.Finalizers = &metav1.Time{}, []string{"wait"}
	client := fake.NewClientset(
		world.Nodes[0], world.Nodes[1], world.Slices[0], world.Slices[1], world.Classes[0],
		&resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "claim"}},
		named("bound", "node-0000", corev1.PodRunning), named("ended", "node-0000", corev1.PodSucceeded), named("waits", "", corev1.PodPending), leaving,
		&resourcev1beta2.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: "rule"}, Spec: resourcev1beta2.DeviceTaintRuleSpec{
			Taint: resourcev1beta2.DeviceTaint{Key: "broken", Effect: resourcev1beta2.DeviceTaintEffectNoExecute},
		}},
	)
	client.PrependReactor("list", "devicetaintrules", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetResource().Version == "v1" {
			return true, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "devicetaintrules"}, "")
		}
		return false, nil, nil
	})
	in, pods, err := Read(t.Context(), client)
	require.NoError(t, err)
	require.Len(t, in.Nodes, 2)
	require.Len(t, in.Slices, 2)
	require.Len(t, in.Classes, 1)
	require.Len(t, in.Claims, 1)
	require.Len(t, in.TaintRules, 1)
	require.Equal(t, "broken", in.TaintRules[0].Spec.Taint.Key)
	require.Len(t, pods, 4)
}

// TestReadFails names what could not be read.
func TestReadFails(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"nodes", "resourceslices", "deviceclasses", "resourceclaims", "resourceclaimtemplates", "pods", "devicetaintrules"} {
		client := fake.NewClientset()
		client.PrependReactor("list", kind, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewTimeoutError("too slow", 1)
		})
		_, _, err := Read(t.Context(), client)
		require.ErrorContains(t, err, "list "+kind+": ")
	}
}
