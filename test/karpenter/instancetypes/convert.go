package instancetypes

import (
	"unique"

	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/kwok-dra/kwok-dra/internal/devices"
)

// sliceTemplates makes Karpenter's form of a slice. Karpenter ignores the devices
// of one that has counters, as slices of Kubernetes 1.34 may, so that makes two.
func sliceTemplates(spec *resourcev1.ResourceSliceSpec) []*cloudprovider.ResourceSliceTemplate {
	var templates []*cloudprovider.ResourceSliceTemplate
	if len(spec.SharedCounters) > 0 {
		counters := newSliceTemplate(spec)
		counters.SharedCounters = spec.SharedCounters
		templates = append(templates, counters)
	}
	if len(spec.Devices) > 0 {
		slice := newSliceTemplate(spec)
		slice.Devices = templateDevices(spec.Devices)
		templates = append(templates, slice)
	}
	return templates
}

func newSliceTemplate(spec *resourcev1.ResourceSliceSpec) *cloudprovider.ResourceSliceTemplate {
	return &cloudprovider.ResourceSliceTemplate{
		Driver: unique.Make(spec.Driver),
		Pool:   cloudprovider.ResourcePool{Name: unique.Make(spec.Pool.Name)},
	}
}

// templateDevices leaves out devices with taints that keep Pods away. Karpenter
// knows no taints of devices, and would make node after node for a claim that the
// scheduler never allocates there.
func templateDevices(all []resourcev1.Device) []cloudprovider.Device {
	var made []cloudprovider.Device
	for i := range all {
		device := &all[i]
		if !devices.Healthy(device) {
			continue
		}
		made = append(made, cloudprovider.Device{
			Name:                     unique.Make(device.Name),
			Attributes:               device.Attributes,
			Capacity:                 device.Capacity,
			AllowMultipleAllocations: device.AllowMultipleAllocations != nil && *device.AllowMultipleAllocations,
			ConsumesCounters:         device.ConsumesCounters,
		})
	}
	return made
}
