package validation

import (
	"encoding/json"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	apivalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// validateClaimStatus checks values without templates; templates are checked when they are rendered.
func validateClaimStatus(c *v1alpha1.ClaimStatus, at checker) {
	if c == nil {
		return
	}
	oneOf(at.atField("mode"), c.Mode, v1alpha1.ClaimStatusReady, v1alpha1.ClaimStatusNone)
	if c.Data != nil {
		var value any
		err := json.Unmarshal(c.Data.Raw, &value)
		text, isText := value.(string)
		_, isObject := value.(map[string]any)
		switch data := at.atField("data"); {
		case err != nil:
			data.addInvalid(string(c.Data.Raw), "%v", err)
		case isText && !v1alpha1.IsTemplate(text):
			data.addInvalid(text, "must be an object, or a template that yields one")
		case !isText && !isObject:
			data.addInvalid(string(c.Data.Raw), "must be an object, or a template that yields one")
		case len(c.Data.Raw) > resourcev1.AllocatedDeviceStatusDataMaxLength:
			data.addErrors(field.TooLong(data.path, "", resourcev1.AllocatedDeviceStatusDataMaxLength))
		}
	}
	at.atField("cdiDeviceIDs").checkNoneEmpty(c.CDIDeviceIDs, "for example k8s.gpu.example.com/gpu=0")
	if c.NetworkData != nil {
		at.addErrors(ValidateNetworkData(c.NetworkData, at.path.Child("networkData"))...)
	}
}

// ValidateNetworkData applies the API server's rules to all values without templates.
func ValidateNetworkData(data *resourcev1.NetworkDeviceData, path *field.Path) field.ErrorList {
	at := newChecker(path)
	if !v1alpha1.IsTemplate(data.InterfaceName) {
		at.atField("interfaceName").limitLength(data.InterfaceName, resourcev1.NetworkDeviceDataInterfaceNameMaxLength, "")
	}
	if !v1alpha1.IsTemplate(data.HardwareAddress) {
		at.atField("hardwareAddress").limitLength(data.HardwareAddress, resourcev1.NetworkDeviceDataHardwareAddressMaxLength, "")
	}
	ips := at.atField("ips")
	ips.limitItems(len(data.IPs), resourcev1.NetworkDeviceDataMaxIPs)
	for i, ip := range data.IPs {
		if v1alpha1.IsTemplate(ip) {
			continue
		}
		ips.addErrors(apivalidation.IsValidInterfaceAddress(ips.path.Index(i), ip)...)
		if slices.Contains(data.IPs[:i], ip) {
			ips.addErrors(field.Duplicate(ips.path.Index(i), ip))
		}
	}
	return *at.errs
}
