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

// PodSelector selects driver Pods, and in each the container of the plugin.
type PodSelector struct {
	// Namespace is empty for all namespaces, Labels is a selector in text form, and
	// Container is empty for the first one.
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

// DriverPods is how the template selects its driver Pods. It is false for a template
// without driverPod.
func (d *driverPods) DriverPods() (selector PodSelector, ok bool) {
	if d == nil {
		return PodSelector{}, false
	}
	return d.selector, true
}

// NamesDriver reports whether the name of the driver is read from the driver Pods.
func (d *driverPods) NamesDriver() bool { return d != nil && v1alpha1.IsTemplate(d.driver.value) }

// MayBeOf reports whether the template has driverPod and may be of that driver.
func (d *driverPods) MayBeOf(driver string) bool {
	return d != nil && (d.driver.value == driver || d.NamesDriver())
}

// Started reports whether the driver Pod to which the template is bound has been Ready. It
// is true for a template without driverPod.
func (d *driverPods) Started() bool { return d == nil || d.pod == nil || d.pod.Ready }

// DriverPodData is the driver Pod as Go templates see it, or nil where there is none.
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

// wants reports whether a selected Pod has the environment that driverPod.env asks for.
func (d *driverPods) wants(pod *DriverPod, data func() (any, error)) bool {
	if len(d.spec.Env) == 0 || pod.Missing != "" {
		return true
	}
	seen, err := data()
	if err != nil {
		return true // bind reports the error
	}
	env, _ := seen.(map[string]any)["env"].(map[string]any)
	for name, value := range d.spec.Env {
		if env[name] != value {
			return false
		}
	}
	return true
}

// RunsIn reports whether the plugin of a driver of the template runs in a selected Pod.
func (d *driverPods) RunsIn(pod *DriverPod) bool { return pod.Connected && d.wants(pod, pod.decoded) }

// DriverOf is the name of the driver that runs in a selected Pod. It is false where the
// template does not want the Pod, or cannot be rendered for it.
func (t *Template) DriverOf(pod *DriverPod) (driver string, ok bool) {
	data := sync.OnceValues(pod.decoded)
	if !t.wants(pod, data) {
		return "", false
	}
	bound, err := t.bind(pod, data)
	if err != nil {
		return "", false
	}
	return bound.Driver, true
}

// bind copies the template for one driver Pod: the copy has the name of the driver, and
// is rendered with the Pod.
func (t *Template) bind(pod *DriverPod, data func() (any, error)) (*Template, error) {
	if pod.Missing != "" {
		return nil, fmt.Errorf("template %s: pod %s/%s has no container %q: correct driverPod.container", t.Name, pod.Namespace, pod.Name, pod.Missing)
	}
	sized, err := t.counts.sized(t, data)
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

// Pods lists the driver Pods of a template on one node. It is false where they are not
// known, since the cache is not complete yet.
type Pods func(t *Template) ([]*DriverPod, bool)

// ListPods lists the driver Pods of templates, each selector once. The result finds those of
// a node by its name.
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

// Bound are the templates of a node, those with driverPod bound to the driver Pods there.
type Bound struct {
	// Templates are those without driverPod, and the others once for each driver to which
	// the kubelet has a connection.
	Templates []*Template
	// Down are the drivers that have Pods, and to which the kubelet has lost the connection.
	Down map[string]Down
	// Absent are the templates without a connection, and Unknown those whose Pods are not
	// known. Failed are those that cannot be rendered for a Pod, with the error.
	Absent, Unknown []*Template
	Failed          map[*Template]error

	// total is what those with driverPod make: each Pod may have them make more.
	total Total
}

// Down is a driver to which the kubelet has lost the connection.
type Down struct {
	// Template is bound to the newest Pod.
	Template *Template
	// Since is when the last connection was lost, or zero where that is not known.
	Since time.Time
}

// Bind binds the templates that select a node to the driver Pods there. Several Pods may
// run one driver: the newest that is Ready counts, or else the newest. Where pods is nil,
// no node has any.
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

// add binds one template.
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
		if !t.wants(pod, data) {
			continue
		}
		made, err := t.bind(pod, data)
		if err == nil && pod.Connected && !drivers[made.Driver] {
			err = b.chargeTemplate(made, pod)
		}
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

// chargeTemplate refuses a template with which all would make too much.
func (b *Bound) chargeTemplate(made *Template, pod *DriverPod) error {
	all := b.total
	all.Add(made)
	if excess := all.Excess(); excess != "" {
		return fmt.Errorf("template %s for pod %s/%s: on its node, %s", made.Name, pod.Namespace, pod.Name, excess)
	}
	b.total = all
	return nil
}

// lose notes that the kubelet has lost the connection to a Pod.
func (b *Bound) lose(t *Template, pod *DriverPod) {
	down, noted := b.Down[t.Driver]
	if !noted || pod.Registered && !down.Registered() {
		down.Template = t
	}
	if pod.Lost.After(down.Since) {
		down.Since = pod.Lost
	}
	b.Down[t.Driver] = down
}

// Registered reports whether the plugin is still registered with the kubelet.
func (d Down) Registered() bool { return d.Template != nil && d.Template.pod.Registered }

// prefer is negative where the first of two Pods of one driver counts.
func prefer(a, b *DriverPod) int {
	if a.Ready != b.Ready {
		if a.Ready {
			return -1
		}
		return 1
	}
	return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(b.Namespace, a.Namespace), cmp.Compare(b.Name, a.Name))
}

// Claimed are the templates of allocated devices. Drivers without a connection are among
// them, as far as their names are known.
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
