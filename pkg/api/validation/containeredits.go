package validation

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// maxEdits limits each list of edits.
const maxEdits = 64

// The values of DeviceNode.Type, and the letters of DeviceNode.Permissions.
const (
	nodeTypes       = "bcup"
	nodePermissions = "rwm"
)

// validateContainerEdits checks values without templates; templates are checked when they are
// rendered.
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
	if c.DeviceMetadata != nil {
		validateDeviceMetadata(c.DeviceMetadata, at.atField("deviceMetadata").atField("versions"))
	}
}

func validateDeviceMetadata(metadata *v1alpha1.DeviceMetadata, at checker) {
	for i, version := range metadata.Versions {
		at.atIndex(i).requireThat(slices.Contains(v1alpha1.MetadataVersions, version), version, "must be %s", strings.Join(v1alpha1.MetadataVersions, " or "))
		at.atIndex(i).requireThat(!slices.Contains(metadata.Versions[:i], version), version, "must not be listed twice")
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
	for i := range edits.DeviceNodes {
		validateDeviceNode(&edits.DeviceNodes[i], nodes.atIndex(i))
	}
	return *at.errs
}

// validatePath requires an absolute path in a container.
func validatePath(path string, at checker) {
	if at.requirePresence(path != "", "where it is in the container, for example /dev/nvidia0") && !v1alpha1.IsTemplate(path) {
		at.requireThat(strings.HasPrefix(path, "/"), path, "must be an absolute path; use %q", "/"+path)
	}
}

func validateDeviceNode(node *v1alpha1.DeviceNode, at checker) {
	validatePath(node.Path, at.atField("path"))
	if !v1alpha1.IsTemplate(node.Type) {
		isType := len(node.Type) <= 1 && strings.Contains(nodeTypes, node.Type)
		at.atField("type").requireThat(isType, node.Type, "must be b, c, u or p")
	}
	if !v1alpha1.IsTemplate(node.Permissions) {
		isKnown := strings.Trim(node.Permissions, nodePermissions) == ""
		at.atField("permissions").requireThat(isKnown, node.Permissions, "must be of the letters r, w and m")
	}
	for _, number := range []struct {
		name  string
		value *intstr.IntOrString
	}{{"major", node.Major}, {"minor", node.Minor}} {
		switch at, value := at.atField(number.name), number.value; {
		case value == nil:
		case value.Type == intstr.Int:
			at.requireThat(value.IntVal >= 0, value.IntVal, "must not be less than 0")
		case !v1alpha1.IsTemplate(value.StrVal):
			_, err := strconv.ParseUint(value.StrVal, 10, 31)
			at.requireThat(err == nil, value.StrVal, "must be a number, or a template that yields one")
		}
	}
	isUint32 := func(number *int64) bool { return number == nil || *number >= 0 && *number <= math.MaxUint32 }
	const mustBeUint32 = "must be between 0 and 4294967295"
	at.atField("fileMode").requireThat(isUint32(node.FileMode), node.FileMode, mustBeUint32)
	at.atField("uid").requireThat(isUint32(node.UID), node.UID, mustBeUint32)
	at.atField("gid").requireThat(isUint32(node.GID), node.GID, mustBeUint32)
}
