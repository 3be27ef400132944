package lifecycle

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kwok-dra/kwok-dra/internal/testing/claimstest"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// TestDecoded is what the JSON of the object says.
func TestDecoded(t *testing.T) {
	t.Parallel()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "n", Generation: 7, CreationTimestamp: metav1.Unix(1e9, 0),
		Labels: map[string]string{"type": "kwok"}, Annotations: map[string]string{"text": "a <b> & \"c\" \u2028"},
	}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Unix(1e9, 0), LastTransitionTime: metav1.Unix(1e9, 0)}}
	Slim(node)
	node.Spec.Taints = []corev1.Taint{{Key: "a", TimeAdded: new(metav1.Unix(1e9, 0))}}
	node.Status.Capacity = corev1.ResourceList{"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("2Ti")}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = 10250
	node.Status.Images = []corev1.ContainerImage{{Names: []string{"a"}, SizeBytes: math.MaxInt64}}
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		Priority:    new(int32(-1)),
		HostNetwork: true,
		Containers: []corev1.Container{{Name: "c", LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
			TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(80)}, HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromString("http")},
		}}}},
	}}
	for object, typed := range map[*Object]any{NewObject(node): node, NewObject(&corev1.Node{}): &corev1.Node{}, NewObject(pod): pod} {
		encoded, err := json.Marshal(typed)
		require.NoError(t, err)
		decoder := json.NewDecoder(bytes.NewReader(encoded))
		decoder.UseNumber()
		var want any
		require.NoError(t, decoder.Decode(&want))
		got, err := object.Decoded()
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

func TestPluginOf(t *testing.T) {
	t.Parallel()
	node := claimstest.NewNode("n")
	require.Equal(t, PluginUp, PluginOf(node))
	node.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionFalse},
		{Type: v1alpha1.PluginRegistered, Status: corev1.ConditionUnknown, Reason: v1alpha1.PluginCrashed},
	}
	require.Equal(t, PluginSilent, PluginOf(node))
	node.Status.Conditions[1].Reason = "Other"
	require.Equal(t, PluginGone, PluginOf(node))
}
