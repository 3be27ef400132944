package validation

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	apivalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// What a prepared device shows in its claim and in containers. Values with templates are checked
// when they are rendered.

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

// maxEdits limits each list of edits.
const maxEdits = 64

// The values of DeviceNode.Type, and the letters of DeviceNode.Permissions.
const (
	nodeTypes       = "bcup"
	nodePermissions = "rwm"
)

func validateContainerEdits(c *v1alpha1.ContainerEdits, at checker) {
	if c == nil {
		return
	}
	for _, part := range []struct {
		name  string
		edits *v1alpha1.Edits
	}{{"perClaim", c.PerClaim}, {"perRequest", c.PerRequest}, {"perDevice", c.PerDevice}} {
		if part.edits != nil {
			at.addErrors(ValidateEdits(part.edits, at.path.Child(part.name))...)
		}
	}
	if c.DeviceMetadata == nil {
		return
	}
	for i, version := range c.DeviceMetadata.Versions {
		at := at.atField("deviceMetadata").atField("versions").atIndex(i)
		at.requireThat(slices.Contains(v1alpha1.MetadataVersions, version), version, "must be %s", strings.Join(v1alpha1.MetadataVersions, " or "))
		at.requireThat(!slices.Contains(c.DeviceMetadata.Versions[:i], version), version, "must not be listed twice")
	}
}

// ValidateEdits applies the rules of CDI to all values without templates.
func ValidateEdits(edits *v1alpha1.Edits, path *field.Path) field.ErrorList {
	at := newChecker(path)
	env, mounts, nodes := at.atField("env"), at.atField("mounts"), at.atField("deviceNodes")
	env.limitItems(len(edits.Env), maxEdits)
	for i, variable := range edits.Env {
		isVariable := v1alpha1.IsTemplate(variable) || strings.Index(variable, "=") > 0
		env.atIndex(i).requireThat(isVariable, variable, "must be NAME=value, for example GPU_COUNT=1")
	}
	mounts.limitItems(len(edits.Mounts), maxEdits)
	for i, mount := range edits.Mounts {
		at := mounts.atIndex(i)
		at.atField("hostPath").requirePresence(mount.HostPath != "", "what is mounted, for example /usr/lib/libcuda.so")
		validatePath(mount.ContainerPath, at.atField("containerPath"))
		at.atField("options").limitItems(len(mount.Options), maxEdits)
		at.atField("options").checkNoneEmpty(mount.Options, "for example ro")
	}
	nodes.limitItems(len(edits.DeviceNodes), maxEdits)
	for i, node := range edits.DeviceNodes {
		at := nodes.atIndex(i)
		validatePath(node.Path, at.atField("path"))
		isType := v1alpha1.IsTemplate(node.Type) || len(node.Type) <= 1 && strings.Contains(nodeTypes, node.Type)
		at.atField("type").requireThat(isType, node.Type, "must be b, c, u or p")
		arePermissions := v1alpha1.IsTemplate(node.Permissions) || strings.Trim(node.Permissions, nodePermissions) == ""
		at.atField("permissions").requireThat(arePermissions, node.Permissions, "must be of the letters r, w and m")
		validateNumber(node.Major, at.atField("major"))
		validateNumber(node.Minor, at.atField("minor"))
		isUint32 := func(number *int64) bool { return number == nil || *number >= 0 && *number <= math.MaxUint32 }
		const mustBeUint32 = "must be between 0 and 4294967295"
		at.atField("fileMode").requireThat(isUint32(node.FileMode), node.FileMode, mustBeUint32)
		at.atField("uid").requireThat(isUint32(node.UID), node.UID, mustBeUint32)
		at.atField("gid").requireThat(isUint32(node.GID), node.GID, mustBeUint32)
	}
	return *at.errs
}

// validatePath requires an absolute path in a container.
func validatePath(path string, at checker) {
	if at.requirePresence(path != "", "where it is in the container, for example /dev/nvidia0") && !v1alpha1.IsTemplate(path) {
		at.requireThat(strings.HasPrefix(path, "/"), path, "must be an absolute path; use %q", "/"+path)
	}
}

// validateNumber requires a major or minor number of a device node.
func validateNumber(number *intstr.IntOrString, at checker) {
	switch {
	case number == nil:
	case number.Type == intstr.Int:
		at.requireThat(number.IntVal >= 0, number.IntVal, "must not be less than 0")
	case !v1alpha1.IsTemplate(number.StrVal):
		_, err := strconv.ParseUint(number.StrVal, 10, 31)
		at.requireThat(err == nil, number.StrVal, "must be a number, or a template that yields one")
	}
}
