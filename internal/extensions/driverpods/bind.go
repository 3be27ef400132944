package driverpods

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kwok-dra/kwok-dra/internal/devices"
)

// Selector selects driver Pods, and in each the container of the plugin.
type Selector struct {
	// Namespace is empty for all namespaces, Labels is a selector in text form, and
	// Container is empty for the first one.
	Namespace, Labels, Container string
}

// SelectorOf is how a template selects its driver Pods. It is false for a template without driverPod.
func SelectorOf(t *devices.Template) (selector Selector, ok bool) {
	if t.DriverPod == nil {
		return Selector{}, false
	}
	return Selector{t.DriverPod.Namespace, metav1.FormatLabelSelector(&t.DriverPod.Selector), t.DriverPod.Container}, true
}

// Listed lists the driver Pods of a template on one node. It is false where they are not known yet.
type Listed func(t *devices.Template) (pods []*Pod, known bool)

// ListPods lists the driver Pods of templates, each selector once. The result finds those of a node
// by its name.
func ListPods(templates []*devices.Template, list func(Selector) ([]corev1.Pod, error)) (func(node string) Listed, error) {
	found := map[Selector]map[string][]*Pod{}
	for _, t := range templates {
		selector, ok := SelectorOf(t)
		if _, done := found[selector]; !ok || done {
			continue
		}
		pods, err := list(selector)
		if err != nil {
			return nil, fmt.Errorf("list driver Pods of template %s: %w", t.Name, err)
		}
		on := map[string][]*Pod{}
		for i := range pods {
			node := pods[i].Spec.NodeName
			on[node] = append(on[node], NewPod(&pods[i], selector.Container))
		}
		found[selector] = on
	}
	return func(node string) Listed {
		return func(t *devices.Template) ([]*Pod, bool) {
			selector, _ := SelectorOf(t)
			return found[selector][node], true
		}
	}, nil
}

// ListStarted lists the driver Pods among Pods that are to run on a node, as they will be once they are
// Ready there. A Pod without a namespace may be in any.
func ListStarted(node *corev1.Node, pods []*corev1.Pod) Listed {
	return func(t *devices.Template) ([]*Pod, bool) {
		selector, _ := SelectorOf(t)
		selected, err := labels.Parse(selector.Labels)
		if err != nil {
			return nil, true
		}
		var on []*Pod
		for _, pod := range pods {
			if !selected.Matches(labels.Set(pod.Labels)) || selector.Namespace != "" && pod.Namespace != "" && selector.Namespace != pod.Namespace {
				continue
			}
			ready := pod.DeepCopy()
			ready.Spec.NodeName = node.Name
			ready.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
			on = append(on, NewPod(ready, selector.Container))
		}
		return on, true
	}
}

// BindTemplate implements devices.Pods. If several Pods run one driver, the newest that has been Ready
// counts, or else the newest.
func (l Listed) BindTemplate(t *devices.Template, bound *devices.Bound) {
	pods, known := l(t)
	if !known {
		bound.Unknown = append(bound.Unknown, t)
		return
	}
	drivers := map[string]bool{}
	for _, pod := range slices.SortedFunc(slices.Values(pods), comparePreference) {
		data := sync.OnceValues(pod.dataForTemplates)
		if !wantsPod(t, pod, data) {
			continue
		}
		made, err := bindToPod(t, pod, data)
		if err == nil && pod.Connected && !drivers[made.Driver] {
			err = checkTotal(bound, made, pod)
		}
		switch {
		case err != nil:
			bound.Failed[t] = cmp.Or(bound.Failed[t], err)
		case !pod.Connected && (pod.Registered || !pod.Lost.IsZero()):
			// The kubelet has lost the connection to the Pod.
			down, known := bound.Down[made.Driver]
			if !known || pod.Registered && !down.Registered {
				down.Template, down.Registered = made, pod.Registered
			}
			if pod.Lost.After(down.Since) {
				down.Since = pod.Lost
			}
			bound.Down[made.Driver] = down
		case !pod.Connected: // the plugin has not started yet
		case !drivers[made.Driver]:
			drivers[made.Driver] = true
			bound.Templates = append(bound.Templates, made)
		}
	}
	if len(drivers) == 0 {
		bound.Absent = append(bound.Absent, t)
	}
}

// comparePreference is negative if the first of two Pods of one driver counts.
func comparePreference(a, b *Pod) int {
	if a.Ready != b.Ready {
		if a.Ready {
			return -1
		}
		return 1
	}
	return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(b.Namespace, a.Namespace), cmp.Compare(b.Name, a.Name))
}

// wantsPod reports whether a selected Pod has the environment that driverPod.env asks for.
func wantsPod(t *devices.Template, pod *Pod, data func() (any, error)) bool {
	if len(t.DriverPod.Env) == 0 || pod.Missing != "" {
		return true
	}
	decoded, err := data()
	if err != nil {
		return true // bindToPod reports the error
	}
	env, _ := decoded.(map[string]any)["env"].(map[string]any)
	for name, value := range t.DriverPod.Env {
		if env[name] != value {
			return false
		}
	}
	return true
}

// bindToPod binds a template to a Pod that it wants.
func bindToPod(t *devices.Template, pod *Pod, data func() (any, error)) (*devices.Template, error) {
	if pod.Missing != "" {
		return nil, fmt.Errorf("template %s: pod %s/%s has no container %q: correct driverPod.container", t.Name, pod.Namespace, pod.Name, pod.Missing)
	}
	bound, err := t.BindPod(t, devices.BoundPod{Ready: pod.Ready, Data: data})
	if err != nil {
		return nil, fmt.Errorf("template %s for pod %s/%s: %w", t.Name, pod.Namespace, pod.Name, err)
	}
	return bound, nil
}

// checkTotal refuses a template with which those bound to the Pods of a node make too much.
func checkTotal(bound *devices.Bound, made *devices.Template, pod *Pod) error {
	var total devices.Total
	for _, t := range append(slices.Clone(bound.Templates), made) {
		if t.DriverPod != nil {
			total.Add(t)
		}
	}
	if excess := total.Excess(); excess != "" {
		return fmt.Errorf("template %s for pod %s/%s: on its node, %s", made.Name, pod.Namespace, pod.Name, excess)
	}
	return nil
}
