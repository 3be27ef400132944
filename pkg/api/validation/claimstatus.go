package validation

import (
	"encoding/json"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	apivalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/internal/util/fieldcheck"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// validateClaimStatus checks what a prepared device shows in its claim. Values with templates are
// checked when they are rendered.
func validateClaimStatus(c *v1alpha1.ClaimStatus, at fieldcheck.Checker) {
	if c == nil {
		return
	}
	fieldcheck.OneOf(at.AtField("mode"), c.Mode, v1alpha1.ClaimStatusReady, v1alpha1.ClaimStatusNone)
	if c.Data != nil {
		var value any
		err := json.Unmarshal(c.Data.Raw, &value)
		text, isText := value.(string)
		_, isObject := value.(map[string]any)
		switch data := at.AtField("data"); {
		case err != nil:
			data.AddInvalid(string(c.Data.Raw), "%v", err)
		case isText && !v1alpha1.IsTemplate(text):
			data.AddInvalid(text, "must be an object, or a template that yields one")
		case !isText && !isObject:
			data.AddInvalid(string(c.Data.Raw), "must be an object, or a template that yields one")
		case len(c.Data.Raw) > resourcev1.AllocatedDeviceStatusDataMaxLength:
			data.AddErrors(field.TooLong(data.Path, "", resourcev1.AllocatedDeviceStatusDataMaxLength))
		}
	}
	at.AtField("cdiDeviceIDs").CheckNoneEmpty(c.CDIDeviceIDs, "for example k8s.gpu.example.com/gpu=0")
	if c.NetworkData != nil {
		at.AddErrors(ValidateNetworkData(c.NetworkData, at.Path.Child("networkData"))...)
	}
}

// ValidateNetworkData applies the API server's rules to all values without templates.
func ValidateNetworkData(data *resourcev1.NetworkDeviceData, path *field.Path) field.ErrorList {
	at := fieldcheck.New(path)
	if !v1alpha1.IsTemplate(data.InterfaceName) {
		at.AtField("interfaceName").LimitLength(data.InterfaceName, resourcev1.NetworkDeviceDataInterfaceNameMaxLength, "")
	}
	if !v1alpha1.IsTemplate(data.HardwareAddress) {
		at.AtField("hardwareAddress").LimitLength(data.HardwareAddress, resourcev1.NetworkDeviceDataHardwareAddressMaxLength, "")
	}
	ips := at.AtField("ips")
	ips.LimitItems(len(data.IPs), resourcev1.NetworkDeviceDataMaxIPs)
	for i, ip := range data.IPs {
		if v1alpha1.IsTemplate(ip) {
			continue
		}
		ips.AddErrors(apivalidation.IsValidInterfaceAddress(ips.Path.Index(i), ip)...)
		if slices.Contains(data.IPs[:i], ip) {
			ips.AddErrors(field.Duplicate(ips.Path.Index(i), ip))
		}
	}
	return at.Errors()
}
