package slicetest

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// FakeNode is a Node that kwok manages, Ready or not.
func FakeNode(name string, ready bool) *corev1.Node {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			UID:         types.UID("uid-of-" + name),
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
			Labels:      map[string]string{"zone": "z1"},
		},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}},
	}
}

// AddTimes gives a time to the taints that have none, as the API server does.
func AddTimes(slice *resourcev1.ResourceSlice, now time.Time) {
	for i := range slice.Spec.Devices {
		for j := range slice.Spec.Devices[i].Taints {
			if taint := &slice.Spec.Devices[i].Taints[j]; taint.TimeAdded == nil {
				taint.TimeAdded = &metav1.Time{Time: now.Truncate(time.Second)}
			}
		}
	}
}
