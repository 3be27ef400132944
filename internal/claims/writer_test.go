package claims

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// TestTransitionTime: a condition that stays keeps its time, and one of another entry
// does not count.
func TestTransitionTime(t *testing.T) {
	t.Parallel()
	earlier, now := metav1.NewTime(noon), metav1.NewTime(noon.Add(time.Hour))
	claim := allocated("c")
	claim.Status.Devices = []resourcev1.AllocatedDeviceStatus{
		{Driver: "d", Pool: "n", Device: "gpu-0", Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, LastTransitionTime: earlier}}},
		{Driver: "d", Pool: "n", Device: "gpu-1", Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, LastTransitionTime: earlier}}},
	}
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue}
	for name, want := range map[string]metav1.Time{"gpu-0": earlier, "gpu-1": now, "gpu-2": now} {
		require.Equal(t, want, transitionTime(claim, facts.DeviceID{Driver: "d", Pool: "n", Device: name}, ready, now), name)
	}
	require.Equal(t, now, transitionTime(claim, facts.DeviceID{Driver: "d", Pool: "n", Device: "gpu-0"}, metav1.Condition{Type: "Other", Status: metav1.ConditionTrue}, now))
}
