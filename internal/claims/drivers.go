package claims

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
)

// Kubelets know the real drivers of fake nodes, and call them.
type Kubelets interface {
	// Enabled reports whether real drivers can register.
	Enabled() bool
	// Driver returns what is known of the real drivers of a node for a Pod, or for none if that is nil.
	// It changes nothing.
	Driver(pod *corev1.Pod, node *corev1.Node, hasTemplates func(driver string) bool) plan.Driver
	// Call asks real drivers in the background. OnChange announces the Pod when they have answered.
	Call(pod *corev1.Pod, node *corev1.Node, call *plan.Call, hasTemplates func(driver string) bool)
	// Acknowledge says that a failure of a Pod was reported. If it was the answer of real drivers, a
	// Driver no longer gives that answer.
	Acknowledge(pod *corev1.Pod, node *corev1.Node, failure error)
	// OnChange calls node when drivers of a node come, go or report health, and pod when they have
	// answered for a Pod.
	OnChange(node func(name string), pod func(key types.NamespacedName))
}

// Gate holds back what drivers with templates could prepare at once, as a driver does that waits for other nodes.
type Gate interface {
	// Check returns a *plan.Pending or a *plan.Failure if a driver cannot prepare an allocated device on a node yet. It
	// changes nothing.
	Check(node *corev1.Node, claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) error
	// OnChange calls node when Check may have another answer for the Pods of a node.
	OnChange(node func(name string))
}

// nodeDrivers are all drivers of a node. Each has templates or is a real one.
type nodeDrivers struct {
	// Driver answers for the drivers with templates. It has the Entries of all: real drivers write theirs themselves.
	plan.Driver
	real plan.Driver
}

// driverFor returns which of the two answers for a driver.
func (d *nodeDrivers) driverFor(driver string) plan.Driver {
	if d.real.Has(driver) {
		return d.real
	}
	return d.Driver
}

// Has implements plan.Driver.
func (d *nodeDrivers) Has(driver string) bool { return d.driverFor(driver).Has(driver) }

// Registered implements plan.Driver.
func (d *nodeDrivers) Registered(driver string) (bool, error) {
	return d.driverFor(driver).Registered(driver)
}

// Prepare implements plan.Driver. Real drivers are asked only if no template fails.
func (d *nodeDrivers) Prepare(claims []*resourcev1.ResourceClaim) (plan.Answer, error) {
	if answer, err := d.Driver.Prepare(claims); err != nil {
		return answer, err
	}
	return d.real.Prepare(claims)
}

// Unprepare implements plan.Driver. Real drivers are asked only if no template fails.
func (d *nodeDrivers) Unprepare(last []*resourcev1.ResourceClaim) (plan.Answer, error) {
	if answer, err := d.Driver.Unprepare(last); err != nil {
		return answer, err
	}
	return d.real.Unprepare(last)
}

// ReportsHealth implements plan.Driver.
func (d *nodeDrivers) ReportsHealth() bool { return d.Driver.ReportsHealth() || d.real.ReportsHealth() }

// Health implements plan.Driver.
func (d *nodeDrivers) Health(pod *corev1.Pod, claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) (*plan.Health, error) {
	return d.driverFor(result.Driver).Health(pod, claim, result)
}
