package claims

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	for name, want := range map[string]metav1.Time{"gpu-0": earlier, "gpu-1": now, "gpu-2": now} {
		entry := resourcev1.AllocatedDeviceStatus{Driver: "d", Pool: "n", Device: name, Conditions: []metav1.Condition{
			{Type: "Ready", Status: metav1.ConditionTrue}, {Type: "Other", Status: metav1.ConditionTrue},
		}}
		timed := withTransitionTimes(claim, []resourcev1.AllocatedDeviceStatus{entry}, now)
		require.Equal(t, want, timed[0].Conditions[0].LastTransitionTime, name)
		require.Equal(t, now, timed[0].Conditions[1].LastTransitionTime, name)
		require.Zero(t, entry.Conditions[0].LastTransitionTime, "the plan keeps its own")
	}
}
