package kubelet

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
	"github.com/kwok-dra/kwok-dra/internal/claims/templates"
	"github.com/kwok-dra/kwok-dra/internal/extensions/devicehealth"
)

// nodeDrivers are all drivers of a node. Each has templates or is a real one.
type nodeDrivers struct {
	// Driver answers for the drivers with templates. It has the Entries of all: real drivers write theirs themselves.
	plan.Driver
	real *Driver
}

// AddDrivers adds the real drivers of a node to those with templates.
func (k *Kubelets) AddDrivers(ofTemplates *templates.Driver, pod *corev1.Pod, node *corev1.Node, hasTemplates func(driver string) bool) plan.Driver {
	ofPlugins := k.Driver(pod, node, hasTemplates)
	ofTemplates.IsReal = ofPlugins.Has
	return &nodeDrivers{ofTemplates, ofPlugins}
}

// driverFor returns which of the two answers for a driver.
func (d *nodeDrivers) driverFor(driver string) plan.Driver {
	if d.real.Has(driver) {
		return d.real
	}
	return d.Driver
}

func (d *nodeDrivers) Has(driver string) bool { return d.driverFor(driver).Has(driver) }

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

// ReportsHealth implements devicehealth.Reporter.
func (d *nodeDrivers) ReportsHealth() bool { return d.real.ReportsHealth() }

// Health implements devicehealth.Reporter.
func (d *nodeDrivers) Health(pod *corev1.Pod, claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) (*devicehealth.Health, error) {
	return devicehealth.Of(d.driverFor(result.Driver), pod, claim, result)
}
