package devices

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Started are the driver Pods among Pods that are to run on a node, as they are once they
// are Ready there. A Pod without a namespace may be in any.
func Started(node *corev1.Node, pods []*corev1.Pod) Pods {
	return func(t *Template) ([]*DriverPod, bool) {
		var on []*DriverPod
		for _, pod := range pods {
			if t.selectsPod(pod) {
				on = append(on, NewDriverPod(started(node, pod), t.DriverPod.Container))
			}
		}
		return on, true
	}
}

func (t *Template) selectsPod(pod *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(&t.DriverPod.Selector)
	namespace := t.DriverPod.Namespace
	return err == nil && selector.Matches(labels.Set(pod.Labels)) && (namespace == "" || pod.Namespace == "" || namespace == pod.Namespace)
}

func started(node *corev1.Node, pod *corev1.Pod) *corev1.Pod {
	ready := pod.DeepCopy()
	ready.Spec.NodeName = node.Name
	ready.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	return ready
}
