package why

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func at(seconds int) metav1.Time {
	return metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(time.Duration(seconds) * time.Second))
}

// TestPrintGroups: of 300 Pods of several owners each cause is said once, on one screen.
func TestPrintGroups(t *testing.T) {
	t.Parallel()
	var answers []*Answer
	for i := range 300 {
		owner, reason := "Job train", "all 8 devices of class gpu on 1 node are allocated (default/a 8); request gpus wants 1"
		switch {
		case i >= 290:
			owner, reason = "", fmt.Sprintf("claim other-%d-gpu does not exist", i)
		case i >= 200:
			owner = "ReplicaSet serve"
		}
		name := fmt.Sprintf("other-%d", i)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu"}}}}
		answers = append(answers, &Answer{Subject: Subject{Namespace: "default", Pod: name, Owner: owner}, State: Unscheduled, Reason: reason, pod: pod, Since: new(at(i % 60).Time)})
	}
	var out strings.Builder
	require.NoError(t, PrintGroups(&out, Groups(answers), at(70).Time, "kwok-dractl why"))
	require.Equal(t, `300 Pods wait, for 2 causes:

290 Pods wait for a node (70s): all 8 devices of class gpu on 1 node are allocated (default/a 8); request gpus wants 1
  - 200 Pods of Job train, such as default/other-0
  - 90 Pods of ReplicaSet serve, such as default/other-200

10 Pods wait for a node (20s): claim other-290-gpu does not exist
  - default/other-290 and 9 more

Details of one: kwok-dractl why -n default other-0
`, out.String())
}
