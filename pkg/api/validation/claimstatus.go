package validation

import (
	"encoding/json"

	resourcev1 "k8s.io/api/resource/v1"
	apivalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// validateClaimStatus checks what is no template; templates are checked when they
// are rendered.
func validateClaimStatus(c *v1alpha1.ClaimStatus, path *field.Path) field.ErrorList {
	errs := oneOf(path.Child("mode"), c.Mode, v1alpha1.ClaimStatusReady, v1alpha1.ClaimStatusNone)
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
		return invalid(path, string(data), err.Error())
	}
	text, isText := value.(string)
	_, isObject := value.(map[string]any)
	switch {
	case isText && !v1alpha1.IsTemplate(text):
		return invalid(path, text, "must be an object, or a template that yields one")
	case !isText && !isObject:
		return invalid(path, string(data), "must be an object, or a template that yields one")
	case len(data) > resourcev1.AllocatedDeviceStatusDataMaxLength:
		return field.ErrorList{field.TooLong(path, "", resourcev1.AllocatedDeviceStatusDataMaxLength)}
	}
	return nil
}

// ValidateNetworkData applies the API server's rules to all values that are no
// templates.
func ValidateNetworkData(data *resourcev1.NetworkDeviceData, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if !v1alpha1.IsTemplate(data.InterfaceName) {
		errs = append(errs, tooLong(path.Child("interfaceName"), data.InterfaceName, resourcev1.NetworkDeviceDataInterfaceNameMaxLength)...)
	}
	if !v1alpha1.IsTemplate(data.HardwareAddress) {
		errs = append(errs, tooLong(path.Child("hardwareAddress"), data.HardwareAddress, resourcev1.NetworkDeviceDataHardwareAddressMaxLength)...)
	}
	errs = append(errs, tooMany(path.Child("ips"), len(data.IPs), resourcev1.NetworkDeviceDataMaxIPs)...)
	seen := map[string]bool{}
	for i, ip := range data.IPs {
		item := path.Child("ips").Index(i)
		if v1alpha1.IsTemplate(ip) {
			continue
		}
		errs = append(errs, apivalidation.IsValidInterfaceAddress(item, ip)...)
		if seen[ip] {
			errs = append(errs, field.Duplicate(item, ip))
		}
		seen[ip] = true
	}
	return errs
}
