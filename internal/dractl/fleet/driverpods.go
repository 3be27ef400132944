package fleet

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/documents"
	"github.com/kwok-dra/kwok-dra/internal/extensions/driverpods"
)

// DriverPods are Pods that may be of drivers. One that is not bound stands for one that
// runs on each node that it may run on.
type DriverPods []*corev1.Pod

// Add adds a Pod, or the Pod of a DaemonSet. Objects of other kinds are none.
func (d *DriverPods) Add(object documents.Object) error {
	switch object.GroupVersionKind().GroupKind().String() {
	case "Pod":
		pod := &corev1.Pod{}
		if err := object.Into(pod); err != nil {
			return err
		}
		*d = append(*d, pod)
	case "DaemonSet.apps":
		set := &appsv1.DaemonSet{}
		if err := object.Into(set); err != nil {
			return err
		}
		pod := &corev1.Pod{ObjectMeta: set.Spec.Template.ObjectMeta, Spec: set.Spec.Template.Spec}
		pod.Namespace, pod.Name = set.Namespace, set.Name
		*d = append(*d, pod)
	}
	return nil
}

// On are the driver Pods of templates on a node, all of them Ready.
func (d DriverPods) On(node *corev1.Node) driverpods.Listed {
	elsewhere := func(pod *corev1.Pod) bool {
		if pod.Spec.NodeName != "" {
			return pod.Spec.NodeName != node.Name
		}
		mayRun, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node)
		return err != nil || !mayRun
	}
	return driverpods.ListStarted(node, slices.DeleteFunc(slices.Clone(d), elsewhere))
}

// Live asks the cluster for the driver Pods of templates, each as it is there.
func Live(ctx context.Context, client kubernetes.Interface, set *config.Set) (func(node *corev1.Node) driverpods.Listed, error) {
	on, err := driverpods.ListPods(set.Templates, func(selector driverpods.Selector) ([]corev1.Pod, error) {
		list, err := client.CoreV1().Pods(selector.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector.Labels})
		if err != nil {
			return nil, err
		}
		return list.Items, nil
	})
	if err != nil {
		return nil, err
	}
	return func(node *corev1.Node) driverpods.Listed { return on(node.Name) }, nil
}

// TellWithoutPods says which templates publish nothing since there is no driver Pod on any
// of the nodes that they select.
func TellWithoutPods(streams cli.Streams, set *config.Set, nodes []*corev1.Node, pods func(node *corev1.Node) driverpods.Listed) {
	for _, t := range set.Templates {
		if t.DriverPod == nil || !slices.ContainsFunc(nodes, t.Selects) {
			continue
		}
		has := func(node *corev1.Node) bool {
			on, _ := pods(node)(t)
			return t.Selects(node) && len(on) > 0
		}
		if !slices.ContainsFunc(nodes, has) {
			streams.Tell("template %s has no driver Pod on the nodes that it selects, so it publishes nothing: give a Pod or DaemonSet that spec.driverPod selects\n", t.Name)
		}
	}
}
