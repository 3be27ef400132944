package v1alpha1

import (
	"encoding/json"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
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

// validate checks what is no template; templates are checked when they are
// rendered.
func (c *ClaimStatus) validate(path *field.Path) field.ErrorList {
	errs := oneOf(path.Child("mode"), c.Mode, ClaimStatusReady, ClaimStatusNone)
	if c.Data != nil {
		errs = append(errs, validateData(c.Data.Raw, path.Child("data"))...)
	}
	for i, id := range c.CDIDeviceIDs {
		if id == "" {
			errs = append(errs, field.Required(path.Child("cdiDeviceIDs").Index(i), "for example k8s.gpu.example.com/gpu=0"))
		}
	}
	if c.NetworkData != nil {
		errs = append(errs, ValidateNetworkData(c.NetworkData, path.Child("networkData"))...)
	}
	return errs
}

func validateData(data []byte, path *field.Path) field.ErrorList {
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return field.ErrorList{field.Invalid(path, string(data), err.Error())}
	}
	switch v := value.(type) {
	case map[string]any:
	case string:
		if !IsTemplate(v) {
			return field.ErrorList{field.Invalid(path, v, "must be an object, or a template that yields one")}
		}
	default:
		return field.ErrorList{field.Invalid(path, string(data), "must be an object, or a template that yields one")}
	}
	if len(data) > resourcev1.AllocatedDeviceStatusDataMaxLength {
		return field.ErrorList{field.TooLong(path, "", resourcev1.AllocatedDeviceStatusDataMaxLength)}
	}
	return nil
}

// ValidateNetworkData applies the API server's rules to all values that are no
// templates.
func ValidateNetworkData(data *resourcev1.NetworkDeviceData, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if !IsTemplate(data.InterfaceName) {
		errs = append(errs, tooLong(path.Child("interfaceName"), data.InterfaceName, resourcev1.NetworkDeviceDataInterfaceNameMaxLength)...)
	}
	if !IsTemplate(data.HardwareAddress) {
		errs = append(errs, tooLong(path.Child("hardwareAddress"), data.HardwareAddress, resourcev1.NetworkDeviceDataHardwareAddressMaxLength)...)
	}
	if len(data.IPs) > resourcev1.NetworkDeviceDataMaxIPs {
		errs = append(errs, field.TooMany(path.Child("ips"), len(data.IPs), resourcev1.NetworkDeviceDataMaxIPs))
	}
	seen := map[string]bool{}
	for i, ip := range data.IPs {
		item := path.Child("ips").Index(i)
		if IsTemplate(ip) {
			continue
		}
		errs = append(errs, validation.IsValidInterfaceAddress(item, ip)...)
		if seen[ip] {
			errs = append(errs, field.Duplicate(item, ip))
		}
		seen[ip] = true
	}
	return errs
}
