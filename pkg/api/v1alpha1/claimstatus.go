package v1alpha1

import (
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ClaimStatusMode says whether a prepared device shows a condition.
type ClaimStatusMode string

// The modes of ClaimStatus.
const (
	// ClaimStatusReady gives each prepared device the condition Ready=True, reason
	// Prepared, as AllocatedDeviceStatus asks of a driver that has configured it.
	ClaimStatusReady ClaimStatusMode = "Ready"
	// ClaimStatusNone gives no condition. Without data and networkData nothing at
	// all is written, as by NVIDIA's driver.
	ClaimStatusNone ClaimStatusMode = "None"
)

// Health says what the kubelet would know of the health of the devices.
type Health string

// The values of ResourcePoolTemplateSpec.Health.
const (
	// HealthUnknown is what Pods show of a driver that does not report health.
	HealthUnknown Health = "Unknown"
	// HealthReport shows devices with a taint of effect NoSchedule or NoExecute as
	// Unhealthy, and others as Healthy.
	HealthReport Health = "Report"
)

// ClaimStatus says what a prepared device shows in the status.devices of its
// ResourceClaim.
//
// String values marked "template" are Go templates as in the devices. They see
//
//	.Node      the Node, as elsewhere
//	.Device    the device as it is published (resource.k8s.io/v1 Device)
//	.Result    the allocation result (DeviceRequestAllocationResult): request,
//	           driver, pool, device, shareID, consumedCapacity
//	.Config    the opaque parameters for the driver and the request, a list: those
//	           of the DeviceClass before those of the claim
//	.Claim     name, namespace and uid of the claim
//	.Pods      the Pods that the claim is prepared for, a list of name, namespace
//	           and uid in the order of their names
//
// The status is written once per allocation; with .Pods it is written whenever
// the Pods change.
type ClaimStatus struct {
	// Mode is Ready or None. Default: Ready.
	Mode ClaimStatusMode `json:"mode,omitempty"`

	// Data is the driver's own data: an object, each string in which is a
	// template, or a string, a template that yields an object in YAML or JSON. At
	// most 10 KiB when rendered.
	//
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Data *runtime.RawExtension `json:"data,omitempty"`

	// NetworkData is what network drivers report: interfaceName (at most 256
	// characters), ips (at most 16, in CIDR notation, for example 192.0.2.5/24) and
	// hardwareAddress (at most 128 characters), all of them templates.
	NetworkData *resourcev1.NetworkDeviceData `json:"networkData,omitempty"`

	// CDIDeviceIDs, templates, are what the driver would give the kubelet. The
	// first one identifies the device in the Pod's
	// status.containerStatuses[].allocatedResourcesStatus; without any it is
	// <driver>/<pool>/<device>.
	CDIDeviceIDs []string `json:"cdiDeviceIDs,omitempty"`
}
