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

	"github.com/kwok-dra/kwok-dra/internal/devices/gotemplate"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/api/validation"
)

// PodSelector selects driver Pods, and in each the container of the plugin.
type PodSelector struct {
	// Namespace is empty for all namespaces, Labels is a selector in text form, and
	// Container is empty for the first one.
	Namespace, Labels, Container string
}

// driverPods are the Pods that the pools of a template come and go with.
type driverPods struct {
	selector PodSelector
	// driver is the driver's name. It may be a template until the template is bound.
	driver gotemplate.Text
	// counts is nil where no driver Pod says how many devices there are.
	counts *counts
	// pod is the driver Pod that the template is bound to, or nil, and data is what templates see
	// of it.
	pod  *DriverPod
	data func() (any, error)
}

func newDriverPods(spec *v1alpha1.ResourcePoolTemplateSpec, driver *field.Path, counts *counts) *driverPods {
	given := spec.DriverPod
	if given == nil {
		return nil
	}
	return &driverPods{
		driver: gotemplate.Text{Path: driver, Source: spec.Driver}, counts: counts,
		selector: PodSelector{given.Namespace, metav1.FormatLabelSelector(&given.Selector), given.Container},
	}
}

// DriverPods is how the template selects its driver Pods. It is false for a template without
// driverPod.
func (t *Template) DriverPods() (selector PodSelector, ok bool) {
	if t.driverPods == nil {
		return PodSelector{}, false
	}
	return t.driverPods.selector, true
}

// NamesDriver reports whether the name of the driver is read from the driver Pods.
func (t *Template) NamesDriver() bool {
	return t.driverPods != nil && v1alpha1.IsTemplate(t.driverPods.driver.Source)
}

// MayBeOf reports whether the template has driverPod and may be of a driver.
func (t *Template) MayBeOf(driver string) bool {
	return t.driverPods != nil && (t.driverPods.driver.Source == driver || t.NamesDriver())
}

// Started reports whether the driver Pod to which the template is bound has been Ready. It is true
// for a template that is not bound.
func (t *Template) Started() bool {
	return t.driverPods == nil || t.driverPods.pod == nil || t.driverPods.pod.Ready
}

// DriverPodData is the driver Pod as Go templates see it, or nil for a template that is not bound.
func (t *Template) DriverPodData() (any, error) {
	if t.driverPods == nil || t.driverPods.data == nil {
		return nil, nil
	}
	return t.driverPods.data()
}

// sampleDataFor adds a sample driver Pod, for a template that has driver Pods.
func sampleDataFor(t *Template, others map[string]any) map[string]any {
	if t.driverPods == nil {
		return others
	}
	data := maps.Clone(others)
	data["DriverPod"] = samplePod
	return data
}

// wantsPod reports whether a selected Pod has the environment that driverPod.env asks for.
func wantsPod(t *Template, pod *DriverPod, data func() (any, error)) bool {
	if len(t.DriverPod.Env) == 0 || pod.Missing != "" {
		return true
	}
	decoded, err := data()
	if err != nil {
		return true // bindTo reports the error
	}
	env, _ := decoded.(map[string]any)["env"].(map[string]any)
	for name, value := range t.DriverPod.Env {
		if env[name] != value {
			return false
		}
	}
	return true
}

// RunsIn reports whether the plugin of a driver of the template runs in a selected Pod.
func (t *Template) RunsIn(pod *DriverPod) bool {
	return pod.Connected && wantsPod(t, pod, pod.dataForTemplates)
}

// DriverOf is the name of the driver that runs in a selected Pod. It is false where the template
// does not want the Pod, or cannot be rendered for it.
func (t *Template) DriverOf(pod *DriverPod) (driver string, ok bool) {
	data := sync.OnceValues(pod.dataForTemplates)
	if !wantsPod(t, pod, data) {
		return "", false
	}
	bound, err := bindTo(t, pod, data)
	if err != nil {
		return "", false
	}
	return bound.Driver, true
}

// bindTo copies the template for one driver Pod: the copy has the name and the number of devices
// that the Pod gives, and is rendered with the Pod.
func bindTo(t *Template, pod *DriverPod, data func() (any, error)) (*Template, error) {
	if pod.Missing != "" {
		return nil, fmt.Errorf("template %s: pod %s/%s has no container %q: correct driverPod.container", t.Name, pod.Namespace, pod.Name, pod.Missing)
	}
	sized := t
	if counts := t.driverPods.counts; counts != nil {
		numbers, err := counts.renderFor(data)
		if err == nil {
			sized, err = counts.compileSize(t, numbers)
		}
		if err != nil {
			return nil, fmt.Errorf("template %s for pod %s/%s: %w", t.Name, pod.Namespace, pod.Name, err)
		}
	}
	bound, spec, pods := *sized, *sized.ResourcePoolTemplateSpec, *sized.driverPods
	pods.pod, pods.data = pod, data
	bound.ResourcePoolTemplateSpec, bound.driverPods = &spec, &pods
	driver, err := bound.newRenderer(nil).Render(&pods.driver, map[string]any{})
	if err == nil && strings.Contains(driver, gotemplate.NoValue) {
		err = missingField(&pods.driver)
	} else if err == nil {
		err = validation.ValidateDriver(driver, pods.driver.Path).ToAggregate()
	}
	if err != nil {
		return nil, fmt.Errorf("template %s for pod %s/%s: %w", t.Name, pod.Namespace, pod.Name, err)
	}
	spec.Driver, pods.driver = driver, gotemplate.Text{Path: pods.driver.Path, Source: driver}
	return &bound, nil
}

// Pods lists the driver Pods of a template on one node. It is false where they are not known yet.
type Pods func(t *Template) ([]*DriverPod, bool)

// ListPods lists the driver Pods of templates, each selector once. The result finds those of a node
// by its name.
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

// Bound are the templates of a node. Those with driverPod are bound to the driver Pods there.
type Bound struct {
	// Templates are those without driverPod, and the others once for each driver to which the
	// kubelet has a connection.
	Templates []*Template
	// Down are the drivers that have Pods, but to which the kubelet has lost the connection.
	Down map[string]Down
	// Absent are the templates without a connection, and Unknown those whose Pods are not
	// known. Failed are those that cannot be rendered for a Pod, with the error.
	Absent, Unknown []*Template
	Failed          map[*Template]error

	// total counts what those with driverPod make, which each Pod may increase.
	total Total
}

// Down is a driver to which the kubelet has lost the connection.
type Down struct {
	// Template is bound to the newest Pod.
	Template *Template
	// Since is when the last connection was lost, or zero if that is unknown.
	Since time.Time
}

// Bind binds the templates that select a node to the driver Pods there. If several Pods run one
// driver, the newest that is Ready counts, or else the newest. A nil pods means that no node has any.
func Bind(templates []*Template, node *corev1.Node, pods Pods) Bound {
	bound := Bound{Down: map[string]Down{}, Failed: map[*Template]error{}}
	for _, t := range templates {
		switch {
		case t.DriverPod == nil:
			bound.Templates = append(bound.Templates, t)
		case t.Selects(node):
			bound.addTemplate(t, pods)
		}
	}
	for _, t := range bound.Templates {
		delete(bound.Down, t.Driver)
	}
	return bound
}

// addTemplate binds a template to its driver Pods.
func (b *Bound) addTemplate(t *Template, pods Pods) {
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
	for _, pod := range slices.SortedFunc(slices.Values(on), comparePreference) {
		data := sync.OnceValues(pod.dataForTemplates)
		if !wantsPod(t, pod, data) {
			continue
		}
		bound, err := bindTo(t, pod, data)
		if err == nil && pod.Connected && !drivers[bound.Driver] {
			err = b.addToTotal(bound, pod)
		}
		switch {
		case err != nil:
			b.Failed[t] = cmp.Or(b.Failed[t], err)
		case !pod.Connected && (pod.Registered || !pod.Lost.IsZero()):
			b.addDown(bound, pod)
		case !pod.Connected: // the plugin has not started yet
		case !drivers[bound.Driver]:
			drivers[bound.Driver] = true
			b.Templates = append(b.Templates, bound)
		}
	}
	if len(drivers) == 0 {
		b.Absent = append(b.Absent, t)
	}
}

// addToTotal refuses a template with which all would make too much.
func (b *Bound) addToTotal(bound *Template, pod *DriverPod) error {
	all := b.total
	all.Add(bound)
	if excess := all.Excess(); excess != "" {
		return fmt.Errorf("template %s for pod %s/%s: on its node, %s", bound.Name, pod.Namespace, pod.Name, excess)
	}
	b.total = all
	return nil
}

// addDown records that the kubelet has lost the connection to a Pod.
func (b *Bound) addDown(t *Template, pod *DriverPod) {
	down, known := b.Down[t.Driver]
	if !known || pod.Registered && !down.Registered() {
		down.Template = t
	}
	if pod.Lost.After(down.Since) {
		down.Since = pod.Lost
	}
	b.Down[t.Driver] = down
}

// Registered reports whether the plugin is still registered with the kubelet.
func (d Down) Registered() bool { return d.Template != nil && d.Template.driverPods.pod.Registered }

// comparePreference is negative if the first of two Pods of one driver counts.
func comparePreference(a, b *DriverPod) int {
	if a.Ready != b.Ready {
		if a.Ready {
			return -1
		}
		return 1
	}
	return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(b.Namespace, a.Namespace), cmp.Compare(b.Name, a.Name))
}

// Claimed returns the templates that allocated devices may be from. Those of drivers without a
// connection are among them, if the driver's name is known.
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
