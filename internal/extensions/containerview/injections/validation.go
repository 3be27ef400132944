package injections

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/internal/util/fieldcheck"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// maxEdits limits each list of edits.
const maxEdits = 64

// The values of DeviceNode.Type, and the letters of DeviceNode.Permissions.
const (
	nodeTypes       = "bcup"
	nodePermissions = "rwm"
)

// validateContainerEdits checks the fields of a template. Values with templates are checked when they
// are rendered.
func validateContainerEdits(spec *v1alpha1.ResourcePoolTemplateSpec, path *field.Path) field.ErrorList {
	c, at := spec.ContainerEdits, fieldcheck.New(path.Child("containerEdits"))
	if c == nil {
		return nil
	}
	for _, part := range []struct {
		name  string
		edits *v1alpha1.Edits
	}{{"perClaim", c.PerClaim}, {"perRequest", c.PerRequest}, {"perDevice", c.PerDevice}} {
		if part.edits != nil {
			at.AddErrors(validateEdits(part.edits, at.Path.Child(part.name))...)
		}
	}
	if c.DeviceMetadata == nil {
		return at.Errors()
	}
	for i, version := range c.DeviceMetadata.Versions {
		at := at.AtField("deviceMetadata").AtField("versions").AtIndex(i)
		at.RequireThat(slices.Contains(v1alpha1.MetadataVersions, version), version, "must be %s", strings.Join(v1alpha1.MetadataVersions, " or "))
		at.RequireThat(!slices.Contains(c.DeviceMetadata.Versions[:i], version), version, "must not be listed twice")
	}
	return at.Errors()
}

// validateEdits applies the rules of CDI to all values without templates.
func validateEdits(edits *v1alpha1.Edits, path *field.Path) field.ErrorList {
	at := fieldcheck.New(path)
	env, mounts, nodes := at.AtField("env"), at.AtField("mounts"), at.AtField("deviceNodes")
	env.LimitItems(len(edits.Env), maxEdits)
	for i, variable := range edits.Env {
		isVariable := v1alpha1.IsTemplate(variable) || strings.Index(variable, "=") > 0
		env.AtIndex(i).RequireThat(isVariable, variable, "must be NAME=value, for example GPU_COUNT=1")
	}
	mounts.LimitItems(len(edits.Mounts), maxEdits)
	for i, mount := range edits.Mounts {
		at := mounts.AtIndex(i)
		at.AtField("hostPath").RequirePresence(mount.HostPath != "", "what is mounted, for example /usr/lib/libcuda.so")
		validatePath(mount.ContainerPath, at.AtField("containerPath"))
		at.AtField("options").LimitItems(len(mount.Options), maxEdits)
		at.AtField("options").CheckNoneEmpty(mount.Options, "for example ro")
	}
	nodes.LimitItems(len(edits.DeviceNodes), maxEdits)
	for i, node := range edits.DeviceNodes {
		at := nodes.AtIndex(i)
		validatePath(node.Path, at.AtField("path"))
		isType := v1alpha1.IsTemplate(node.Type) || len(node.Type) <= 1 && strings.Contains(nodeTypes, node.Type)
		at.AtField("type").RequireThat(isType, node.Type, "must be b, c, u or p")
		arePermissions := v1alpha1.IsTemplate(node.Permissions) || strings.Trim(node.Permissions, nodePermissions) == ""
		at.AtField("permissions").RequireThat(arePermissions, node.Permissions, "must be of the letters r, w and m")
		validateNumber(node.Major, at.AtField("major"))
		validateNumber(node.Minor, at.AtField("minor"))
		isUint32 := func(number *int64) bool { return number == nil || *number >= 0 && *number <= math.MaxUint32 }
		const mustBeUint32 = "must be between 0 and 4294967295"
		at.AtField("fileMode").RequireThat(isUint32(node.FileMode), node.FileMode, mustBeUint32)
		at.AtField("uid").RequireThat(isUint32(node.UID), node.UID, mustBeUint32)
		at.AtField("gid").RequireThat(isUint32(node.GID), node.GID, mustBeUint32)
	}
	return at.Errors()
}

// validatePath requires an absolute path in a container.
func validatePath(path string, at fieldcheck.Checker) {
	if at.RequirePresence(path != "", "where it is in the container, for example /dev/nvidia0") && !v1alpha1.IsTemplate(path) {
		at.RequireThat(strings.HasPrefix(path, "/"), path, "must be an absolute path; use %q", "/"+path)
	}
}

// validateNumber requires a major or minor number of a device node.
func validateNumber(number *intstr.IntOrString, at fieldcheck.Checker) {
	switch {
	case number == nil:
	case number.Type == intstr.Int:
		at.RequireThat(number.IntVal >= 0, number.IntVal, "must not be less than 0")
	case !v1alpha1.IsTemplate(number.StrVal):
		_, err := strconv.ParseUint(number.StrVal, 10, 31)
		at.RequireThat(err == nil, number.StrVal, "must be a number, or a template that yields one")
	}
}
