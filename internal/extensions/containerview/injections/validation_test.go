package injections

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// TestContainerEditsValidation has CDI's rules for edits.
func TestContainerEditsValidation(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		given string
		want  []string
	}{
		"all":                {"{env: [A=1, B=], mounts: [{hostPath: /a, containerPath: /b, options: [ro]}], deviceNodes: [{path: /dev/a, type: c, major: 1, minor: 2, permissions: rw, fileMode: 438, uid: 0, gid: 4294967295}]}", nil},
		"templates":          {`{env: ["{{ x }}"], mounts: [{hostPath: "{{ x }}", containerPath: "{{ x }}"}], deviceNodes: [{path: "{{ x }}", type: "{{ x }}", major: "{{ x }}", minor: "7", permissions: "{{ x }}"}]}`, nil},
		"no variable":        {"{env: [A, =1, '']}", []string{`e.env[0]: Invalid value: "A": must be NAME=value`, `e.env[1]: Invalid value: "=1": must be NAME=value`, `e.env[2]: Invalid value: "": must be NAME=value`}},
		"mount of nothing":   {"{mounts: [{}]}", []string{`e.mounts[0].hostPath: Required value: what is mounted`, `e.mounts[0].containerPath: Required value: where it is in the container`}},
		"relative":           {"{mounts: [{hostPath: a, containerPath: b}], deviceNodes: [{path: dev/a}]}", []string{`e.mounts[0].containerPath: Invalid value: "b": must be an absolute path; use "/b"`, `e.deviceNodes[0].path: Invalid value: "dev/a": must be an absolute path; use "/dev/a"`}},
		"empty option":       {"{mounts: [{hostPath: /a, containerPath: /b, options: ['']}]}", []string{`e.mounts[0].options[0]: Required value: for example ro`}},
		"node of nothing":    {"{deviceNodes: [{}]}", []string{`e.deviceNodes[0].path: Required value: where it is in the container`}},
		"another type":       {"{deviceNodes: [{path: /dev/a, type: cb}]}", []string{`e.deviceNodes[0].type: Invalid value: "cb": must be b, c, u or p`}},
		"other permissions":  {"{deviceNodes: [{path: /dev/a, permissions: rwx}]}", []string{`e.deviceNodes[0].permissions: Invalid value: "rwx": must be of the letters r, w and m`}},
		"number as text":     {"{deviceNodes: [{path: /dev/a, major: x, minor: -1}]}", []string{`e.deviceNodes[0].major: Invalid value: "x": must be a number, or a template that yields one`, `e.deviceNodes[0].minor: Invalid value: -1: must not be less than 0`}},
		"owner out of range": {"{deviceNodes: [{path: /dev/a, uid: -1, gid: 4294967296}]}", []string{`e.deviceNodes[0].uid: Invalid value: -1: must be between 0 and 4294967295`, `e.deviceNodes[0].gid: Invalid value: 4294967296: must be between 0 and 4294967295`}},
		"too many":           {"{env: [" + strings.Repeat("A=1,", 65) + "]}", []string{`e.env: Too many: 65: must have at most 64 items`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var edits v1alpha1.Edits
			require.NoError(t, yaml.UnmarshalStrict([]byte(test.given), &edits))
			errs := validateEdits(&edits, field.NewPath("e"))
			require.Len(t, errs, len(test.want), "%v", errs)
			for i, want := range test.want {
				require.ErrorContains(t, errs[i], want)
			}
			spec := &v1alpha1.ResourcePoolTemplateSpec{ContainerEdits: &v1alpha1.ContainerEdits{PerClaim: &edits, PerRequest: &edits, PerDevice: &edits}}
			require.Len(t, validateContainerEdits(spec, nil), 3*len(test.want))
		})
	}
}

func TestDeviceMetadataValidation(t *testing.T) {
	t.Parallel()
	validate := func(versions ...string) field.ErrorList {
		edits := &v1alpha1.ContainerEdits{DeviceMetadata: &v1alpha1.DeviceMetadata{Versions: versions}}
		return validateContainerEdits(&v1alpha1.ResourcePoolTemplateSpec{ContainerEdits: edits}, field.NewPath("spec"))
	}
	require.Empty(t, validate("v1alpha1", "v1beta1"))
	require.EqualError(t, validate("v1", "v1beta1", "v1beta1").ToAggregate(), `[spec.containerEdits.deviceMetadata.versions[0]: Invalid value: "v1": must be v1beta1 or v1alpha1, `+
		`spec.containerEdits.deviceMetadata.versions[2]: Invalid value: "v1beta1": must not be listed twice]`)
}
