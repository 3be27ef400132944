package validation

import (
	"math"
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
	if c.PerClaim != nil {
		validateEdits(c.PerClaim, at.atField("perClaim"))
	}
	if c.PerRequest != nil {
		validateEdits(c.PerRequest, at.atField("perRequest"))
	}
	if c.PerDevice != nil {
		validateEdits(c.PerDevice, at.atField("perDevice"))
	}
}

// ValidateEdits applies the rules of CDI to all values without templates.
func ValidateEdits(edits *v1alpha1.Edits, path *field.Path) field.ErrorList {
	at := newChecker(path)
	validateEdits(edits, at)
	return *at.errs
}

func validateEdits(edits *v1alpha1.Edits, at checker) {
	env, mounts, nodes := at.atField("env"), at.atField("mounts"), at.atField("deviceNodes")
	env.tooMany(len(edits.Env), maxEdits)
	for i, variable := range edits.Env {
		isVariable := v1alpha1.IsTemplate(variable) || strings.Index(variable, "=") > 0
		env.atIndex(i).requireThat(isVariable, variable, "must be NAME=value, for example GPU_COUNT=1")
	}
	mounts.tooMany(len(edits.Mounts), maxEdits)
	for i := range edits.Mounts {
		validateMount(&edits.Mounts[i], mounts.atIndex(i))
	}
	nodes.tooMany(len(edits.DeviceNodes), maxEdits)
	for i := range edits.DeviceNodes {
		validateDeviceNode(&edits.DeviceNodes[i], nodes.atIndex(i))
	}
}

func validateMount(mount *v1alpha1.Mount, at checker) {
	at.atField("hostPath").requirePresence(mount.HostPath != "", "what is mounted, for example /usr/lib/libcuda.so")
	validatePath(mount.ContainerPath, at.atField("containerPath"))
	at.atField("options").tooMany(len(mount.Options), maxEdits)
	at.atField("options").checkNoneEmpty(mount.Options, "for example ro")
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
	validateDeviceNumber(node.Major, at.atField("major"))
	validateDeviceNumber(node.Minor, at.atField("minor"))
	validateUint32(node.FileMode, at.atField("fileMode"))
	validateUint32(node.UID, at.atField("uid"))
	validateUint32(node.GID, at.atField("gid"))
}

func validateUint32(number *int64, at checker) {
	if number != nil {
		at.requireThat(*number >= 0 && *number <= math.MaxUint32, *number, "must be between 0 and %d", uint32(math.MaxUint32))
	}
}

func validateDeviceNumber(number *intstr.IntOrString, at checker) {
	switch {
	case number == nil:
	case number.Type == intstr.Int:
		at.requireThat(number.IntVal >= 0, number.IntVal, "must not be less than 0")
	case !v1alpha1.IsTemplate(number.StrVal):
		_, err := strconv.ParseUint(number.StrVal, 10, 31)
		at.requireThat(err == nil, number.StrVal, "must be a number, or a template that yields one")
	}
}
