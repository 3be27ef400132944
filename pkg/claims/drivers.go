package claims

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/pkg/claims/plan"
	"github.com/kwok-dra/kwok-dra/pkg/claims/templates"
	"github.com/kwok-dra/kwok-dra/pkg/config"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
)

// Kubelets know the real drivers of fake nodes.
type Kubelets interface {
	// Enabled reports whether real drivers can register.
	Enabled() bool
	// Driver answers for the real drivers of a node in one look at a Pod, or at a claim where that
	// is nil. Templates reports whether a driver has templates.
	Driver(pod *corev1.Pod, node *corev1.Node, templates func(driver string) bool) plan.Driver
	// Call asks real drivers. When they have answered, the Pod is announced by OnChange.
	Call(pod *corev1.Pod, node *corev1.Node, call *plan.Call, templates func(driver string) bool)
	// OnChange has node called when drivers of a node come, go or tell of devices, and pod when
	// they have answered for a Pod.
	OnChange(node func(name string), pod func(key types.NamespacedName))
}

// newDriver answers for the drivers of a node in one look at a Pod, or at a claim where that is
// nil. Pods are the driver Pods on the node.
func (o *observer) newDriver(pod *corev1.Pod, node *corev1.Node, set *config.Set, slices templates.Slices, pods devices.Pods) plan.Driver {
	made := templates.New(set, node, slices, pods)
	if o.Kubelets == nil || !o.Kubelets.Enabled() {
		return made
	}
	others := o.Kubelets.Driver(pod, node, set.HasDriver)
	return &drivers{templates: made.Except(others.Has), real: others}
}

// drivers are those that have templates, and the real ones. Each driver is one of the two.
type drivers struct {
	templates, real plan.Driver
}

func (d *drivers) driverOf(driver string) plan.Driver {
	if d.real.Has(driver) {
		return d.real
	}
	return d.templates
}

// Has implements plan.Driver.
func (d *drivers) Has(driver string) bool { return d.driverOf(driver).Has(driver) }

// Registered implements plan.Driver.
func (d *drivers) Registered(driver string) (bool, error) { return d.driverOf(driver).Registered(driver) }

// Prepare implements plan.Driver. Real drivers are asked only where no template fails.
func (d *drivers) Prepare(claims []*resourcev1.ResourceClaim) (plan.Answer, error) {
	if answer, err := d.templates.Prepare(claims); err != nil {
		return answer, err
	}
	return d.real.Prepare(claims)
}

// Entries implements plan.Driver. Real drivers write theirs themselves.
func (d *drivers) Entries(claim *resourcev1.ResourceClaim, pods []*corev1.Pod) (*plan.Entries, error) {
	return d.templates.Entries(claim, pods)
}

// Unprepare implements plan.Driver. Real drivers are asked only where no template fails.
func (d *drivers) Unprepare(last []*resourcev1.ResourceClaim) (plan.Answer, error) {
	if answer, err := d.templates.Unprepare(last); err != nil {
		return answer, err
	}
	return d.real.Unprepare(last)
}

// ReportsHealth implements plan.Driver.
func (d *drivers) ReportsHealth() bool { return d.templates.ReportsHealth() || d.real.ReportsHealth() }

// Health implements plan.Driver.
func (d *drivers) Health(pod *corev1.Pod, claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) (*plan.Health, error) {
	return d.driverOf(result.Driver).Health(pod, claim, result)
}
