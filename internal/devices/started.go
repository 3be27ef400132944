package devices

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Started returns the driver Pods among Pods that are to run on a node, as they will be once they are
// Ready there. A Pod without a namespace may be in any.
func Started(node *corev1.Node, pods []*corev1.Pod) Pods {
	return func(t *Template) ([]*DriverPod, bool) {
		var on []*DriverPod
		for _, pod := range pods {
			if t.driverPods.selector.matchesPod(pod) {
				ready := pod.DeepCopy()
				ready.Spec.NodeName = node.Name
				ready.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
				on = append(on, NewDriverPod(ready, t.driverPods.selector.Container))
			}
		}
		return on, true
	}
}

func (s PodSelector) matchesPod(pod *corev1.Pod) bool {
	selector, err := labels.Parse(s.Labels)
	return err == nil && selector.Matches(labels.Set(pod.Labels)) && (s.Namespace == "" || pod.Namespace == "" || s.Namespace == pod.Namespace)
}
