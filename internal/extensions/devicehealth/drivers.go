package devicehealth

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
	"github.com/kwok-dra/kwok-dra/internal/claims/templates"
	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// Health is the health of a device as the kubelet shows it.
type Health struct {
	corev1.ResourceHealth

	// Reported says that the driver of the device reports health.
	Reported bool
}

// Reporter is a plan.Driver with drivers that report health by themselves.
type Reporter interface {
	// ReportsHealth reports whether any of these drivers reports the health of its devices.
	ReportsHealth() bool
	// Health returns what the kubelet shows of an allocated device in a Pod. It is nil for a driver that
	// the Reporter does not have.
	Health(pod *corev1.Pod, claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) (*Health, error)
}

// Of returns what the kubelet shows of an allocated device in a Pod. It is nil for a driver that nothing is known of.
func Of(driver plan.Driver, pod *corev1.Pod, claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) (*Health, error) {
	switch d := driver.(type) {
	case Reporter:
		return d.Health(pod, claim, result)
	case *templates.Driver:
		return healthOfTemplate(d, pod, claim, result)
	}
	return nil, nil
}

// healthOfTemplate is the health of a device whose driver has templates. It is unknown if the driver reports none or the
// plugin is down. The device is named by its first CDI device ID, or by its full name if it has none.
func healthOfTemplate(d *templates.Driver, pod *corev1.Pod, claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) (*Health, error) {
	if err := d.CheckSettled(result); err != nil || !d.Has(result.Driver) {
		return nil, err
	}
	template, err := d.Lookup.Template(result)
	if err != nil {
		return nil, err
	}
	ids, err := d.CDIDeviceIDs(pod, claim, result)
	if err != nil {
		return nil, err
	}
	id := result.Driver + "/" + result.Pool + "/" + result.Device
	if len(ids) > 0 {
		id = ids[0]
	}
	health := &Health{
		ResourceHealth: corev1.ResourceHealth{ResourceID: corev1.ResourceID(id), Health: corev1.ResourceHealthStatusUnknown},
		Reported:       template.Health == v1alpha1.HealthReport,
	}
	if !health.Reported || d.PluginState(result.Driver) != lifecycle.PluginUp {
		return health, nil
	}
	device, err := d.Lookup.Device(result)
	if err != nil {
		return nil, err
	}
	health.Health = corev1.ResourceHealthStatusUnhealthy
	if devices.Healthy(device) {
		health.Health = corev1.ResourceHealthStatusHealthy
	}
	return health, nil
}
