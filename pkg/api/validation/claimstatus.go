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
	oneOf(at.atField("mode"), c.Mode, v1alpha1.ClaimStatusReady, v1alpha1.ClaimStatusNone)
	if c.Data != nil {
		validateData(c.Data.Raw, at.atField("data"))
	}
	at.atField("cdiDeviceIDs").checkNoneEmpty(c.CDIDeviceIDs, "for example k8s.gpu.example.com/gpu=0")
	if c.NetworkData != nil {
		validateNetworkData(c.NetworkData, at.atField("networkData"))
	}
}

func validateData(data []byte, at checker) {
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		at.addInvalid(string(data), "%v", err)
		return
	}
	text, isText := value.(string)
	_, isObject := value.(map[string]any)
	switch {
	case isText && !v1alpha1.IsTemplate(text):
		at.addInvalid(text, "must be an object, or a template that yields one")
	case !isText && !isObject:
		at.addInvalid(string(data), "must be an object, or a template that yields one")
	case len(data) > resourcev1.AllocatedDeviceStatusDataMaxLength:
		at.addErrors(field.TooLong(at.path, "", resourcev1.AllocatedDeviceStatusDataMaxLength))
	}
}

// ValidateNetworkData applies the API server's rules to all values without templates.
func ValidateNetworkData(data *resourcev1.NetworkDeviceData, path *field.Path) field.ErrorList {
	at := newChecker(path)
	validateNetworkData(data, at)
	return *at.errs
}

func validateNetworkData(data *resourcev1.NetworkDeviceData, at checker) {
	if !v1alpha1.IsTemplate(data.InterfaceName) {
		at.atField("interfaceName").tooLong(data.InterfaceName, resourcev1.NetworkDeviceDataInterfaceNameMaxLength)
	}
	if !v1alpha1.IsTemplate(data.HardwareAddress) {
		at.atField("hardwareAddress").tooLong(data.HardwareAddress, resourcev1.NetworkDeviceDataHardwareAddressMaxLength)
	}
	ips := at.atField("ips")
	ips.tooMany(len(data.IPs), resourcev1.NetworkDeviceDataMaxIPs)
	for i, ip := range data.IPs {
		if v1alpha1.IsTemplate(ip) {
			continue
		}
		ips.addErrors(apivalidation.IsValidInterfaceAddress(ips.path.Index(i), ip)...)
		if slices.Contains(data.IPs[:i], ip) {
			ips.atIndex(i).addDuplicate(ip)
		}
	}
}
