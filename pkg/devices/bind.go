package devices

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/api/validation"
)

// PodSelector selects driver Pods, and their container.
type PodSelector struct {
	// Namespace is empty for all, and Labels is a selector of labels.
	Namespace, Labels, Container string
}

// driverPods say which Pods the pools of a template come and go with. It is nil where they
// need none.
type driverPods struct {
	spec     *v1alpha1.DriverPod
	selector PodSelector
	// driver is the driver's name. It may be a template until the template is bound.
	driver place
	// pod is the driver Pod that the template is bound to, if it is, and data the Pod as
	// templates see it.
	pod  *DriverPod
	data func() (any, error)
}

func newDriverPods(spec *v1alpha1.ResourcePoolTemplateSpec, driver *field.Path) *driverPods {
	given := spec.DriverPod
	if given == nil {
		return nil
	}
	return &driverPods{
		spec: given, driver: place{path: driver, value: spec.Driver},
		selector: PodSelector{given.Namespace, metav1.FormatLabelSelector(&given.Selector), given.Container},
	}
}

// DriverPods selects the Pods of a template that has some.
func (d *driverPods) DriverPods() (selector PodSelector, ok bool) {
	if d == nil {
		return PodSelector{}, false
	}
	return d.selector, true
}

// NamesDriver reports whether the driver Pods say what the driver is called.
func (d *driverPods) NamesDriver() bool { return d != nil && v1alpha1.IsTemplate(d.driver.value) }

// MayBeOf reports whether the template, with a Pod of its own, may be of a driver.
func (d *driverPods) MayBeOf(driver string) bool {
	return d != nil && (d.driver.value == driver || d.NamesDriver())
}

// Started reports whether the pool may be published first: the driver Pod that the
// template is bound to, if it has one, is Ready.
func (d *driverPods) Started() bool { return d == nil || d.pod == nil || d.pod.Ready }

// DriverPodData is the driver Pod as templates see it, or nil where there is none.
func (d *driverPods) DriverPodData() (any, error) {
	if d == nil || d.data == nil {
		return nil, nil
	}
	return d.data()
}

// samples adds what stands in for a driver Pod, where there is one.
func (d *driverPods) samples(others map[string]any) map[string]any {
	if d == nil {
		return others
	}
	with := maps.Clone(others)
	with["DriverPod"] = samplePod
	return with
}

// runs reports whether a Pod that is selected has the environment that is asked for.
func (d *driverPods) runs(pod *DriverPod, data func() (any, error)) bool {
	if len(d.spec.Env) == 0 || pod.Missing != "" {
		return true
	}
	seen, err := data()
	if err != nil {
		return true // bind tells
	}
	env, _ := seen.(map[string]any)["env"].(map[string]any)
	for name, value := range d.spec.Env {
		if env[name] != value {
			return false
		}
	}
	return true
}

// DriverOf renders the name of the driver that a Pod is of.
func (t *Template) DriverOf(pod *DriverPod) (string, error) {
	bound, err := t.bind(pod, pod.decoded)
	if err != nil {
		return "", err
	}
	return bound.Driver, nil
}

// bind makes the template that a driver Pod stands for.
func (t *Template) bind(pod *DriverPod, data func() (any, error)) (*Template, error) {
	if pod.Missing != "" {
		return nil, fmt.Errorf("template %s: pod %s/%s has no container %q: correct driverPod.container", t.Name, pod.Namespace, pod.Name, pod.Missing)
	}
	sized, err := t.sized(data)
	if err != nil {
		return nil, fmt.Errorf("template %s for pod %s/%s: %w", t.Name, pod.Namespace, pod.Name, err)
	}
	bound, spec, pods := *sized, *sized.ResourcePoolTemplateSpec, *sized.driverPods
	pods.pod, pods.data = pod, data
	bound.ResourcePoolTemplateSpec, bound.driverPods = &spec, &pods
	if spec.Driver, err = pods.driver.text(bound.newRendering(nil), map[string]any{}); err == nil && strings.Contains(spec.Driver, noValue) {
		err = pods.driver.lacks()
	} else if err == nil {
		err = validation.ValidateDriver(spec.Driver, pods.driver.path).ToAggregate()
	}
	if err != nil {
		return nil, fmt.Errorf("template %s for pod %s/%s: %w", t.Name, pod.Namespace, pod.Name, err)
	}
	pods.driver = place{path: pods.driver.path, value: spec.Driver}
	return &bound, nil
}

// Pods are the driver Pods of a template on a node. It is false where they are not known.
type Pods func(t *Template) ([]*DriverPod, bool)

// ListPods asks for the driver Pods of templates, for those of each selector once. They are
// those of a node by its name.
func ListPods(templates []*Template, list func(PodSelector) ([]corev1.Pod, error)) (func(node string) Pods, error) {
	found := map[PodSelector]map[string][]*DriverPod{}
	for _, t := range templates {
		selector, ok := t.DriverPods()
		if _, done := found[selector]; !ok || done {
			continue
		}
		pods, err := list(selector)
		if err != nil {
			return nil, fmt.Errorf("list driver Pods of template %s: %w", t.Name, err)
		}
		on := map[string][]*DriverPod{}
		for i := range pods {
			node := pods[i].Spec.NodeName
			on[node] = append(on[node], NewDriverPod(&pods[i], selector.Container))
		}
		found[selector] = on
	}
	return func(node string) Pods {
		return func(t *Template) ([]*DriverPod, bool) {
			selector, _ := t.DriverPods()
			return found[selector][node], true
		}
	}, nil
}

// Bound are the templates of a node, of which those with driverPod are bound to the Pods
// there.
type Bound struct {
	// Templates are those without driverPod, and each of the others once for each driver
	// to which the kubelet has a connection.
	Templates []*Template
	// Down are drivers whose Pods are there, but no connection.
	Down map[string]Down
	// Absent are the templates that have no connection here, Unknown those of which the
	// Pods are not known, and Failed those that cannot be rendered for a Pod.
	Absent, Unknown []*Template
	Failed          map[*Template]error
}

// Down is a driver without a connection.
type Down struct {
	// Template is bound to its newest Pod.
	Template *Template
	// Since is when the last connection was lost, or zero where that is not known.
	Since time.Time
}

// Bind binds the templates that select a node to the driver Pods there. Of several Pods
// of one driver the one counts that is Ready, and of these the newest. Without pods there
// are none.
func Bind(templates []*Template, node *corev1.Node, pods Pods) Bound {
	bound := Bound{Down: map[string]Down{}, Failed: map[*Template]error{}}
	for _, t := range templates {
		switch {
		case t.DriverPod == nil:
			bound.Templates = append(bound.Templates, t)
		case t.Selects(node):
			bound.add(t, pods)
		}
	}
	for _, t := range bound.Templates {
		delete(bound.Down, t.Driver)
	}
	return bound
}

func (b *Bound) add(t *Template, pods Pods) {
	var on []*DriverPod
	known := pods == nil
	if pods != nil {
		on, known = pods(t)
	}
	if !known {
		b.Unknown = append(b.Unknown, t)
		return
	}
	drivers := map[string]bool{}
	for _, pod := range slices.SortedFunc(slices.Values(on), prefer) {
		data := sync.OnceValues(pod.decoded)
		if !t.runs(pod, data) {
			continue
		}
		made, err := t.bind(pod, data)
		switch {
		case err != nil:
			b.Failed[t] = cmp.Or(b.Failed[t], err)
		case !pod.Connected && (pod.Registered || !pod.Lost.IsZero()):
			b.lose(made, pod)
		case !pod.Connected: // the plugin has not started yet
		case !drivers[made.Driver]:
			drivers[made.Driver] = true
			b.Templates = append(b.Templates, made)
		}
	}
	if len(drivers) == 0 {
		b.Absent = append(b.Absent, t)
	}
}

// lose notes that a Pod has no connection.
func (b *Bound) lose(t *Template, pod *DriverPod) {
	down, known := b.Down[t.Driver]
	if !known || pod.Registered && !down.Registered() {
		down.Template = t
	}
	if pod.Lost.After(down.Since) {
		down.Since = pod.Lost
	}
	b.Down[t.Driver] = down
}

// Registered reports whether the kubelet knows the plugin still.
func (d Down) Registered() bool { return d.Template != nil && d.Template.pod.Registered }

// prefer is negative where a Pod is to be taken rather than another of its driver.
func prefer(a, b *DriverPod) int {
	if a.Ready != b.Ready {
		if a.Ready {
			return -1
		}
		return 1
	}
	return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(b.Namespace, a.Namespace), cmp.Compare(b.Name, a.Name))
}

// Claimed are the templates by which allocated devices are found: also those of drivers
// without a connection, as far as they are known.
func (b *Bound) Claimed() []*Template {
	all := slices.Clone(b.Templates)
	for _, down := range b.Down {
		all = append(all, down.Template)
	}
	for _, t := range b.Absent {
		named := func(other *Template) bool { return other.Name == t.Name }
		if !t.NamesDriver() && !slices.ContainsFunc(all, named) {
			all = append(all, t)
		}
	}
	return all
}
