package injections

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/internal/devices"
	_ "github.com/kwok-dra/kwok-dra/internal/extensions/templatefields" // it checks what Go templates read
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/api/defaults"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// compileEdits compiles a template with containerEdits, in YAML's flow style.
func compileEdits(t *testing.T, edits string) (*devices.Template, field.ErrorList) {
	t.Helper()
	template := &v1alpha1.ResourcePoolTemplate{ObjectMeta: metav1.ObjectMeta{Name: "t"}}
	require.NoError(t, yaml.UnmarshalStrict([]byte("driver: d\ndevices: [{name: gpu, count: 4}]\ncontainerEdits: "+edits+"\n"), &template.Spec))
	defaults.SetResourcePoolTemplate(template)
	return devices.Compile(template)
}

func validEdits(t *testing.T, edits string) containerEdits {
	t.Helper()
	template, errs := compileEdits(t, edits)
	require.Empty(t, errs)
	return editsOf(template.ResourcePoolTemplateSpec)
}

// someContainer has a device of some claim.
func someContainer() *container {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "uid-of-n"}}
	device := &resourcev1.Device{Name: "gpu-1", Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"model": {StringValue: new("H100")}}}
	result := &resourcev1.DeviceRequestAllocationResult{
		Request: "gpu", Driver: "d", Pool: "n", Device: "gpu-1",
		ConsumedCapacity: map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse("10Gi")},
	}
	return &container{
		Node:  lifecycle.NewObject(node),
		Claim: claimData{Object: devices.Object{Name: "c", Namespace: "default", UID: "uid-of-c"}, AdminAccess: true},
		Pod:   devices.Object{Name: "p", Namespace: "default", UID: "uid-of-p"}, Config: []runtime.RawExtension{{Raw: []byte(`{"sharing": "MPS"}`)}},
		Device: device, Result: result, Request: "gpu", Devices: []deviceData{{device, result}},
	}
}

func TestRenderEdits(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		edits string
		want  v1alpha1.Edits
	}{
		"no template": {`{env: [A=1]}`, v1alpha1.Edits{Env: []string{"A=1"}}},
		"all that is seen": {
			`{env: ['A={{ .Node.metadata.name }} {{ .Claim.name }} {{ .Claim.uid }} {{ .Claim.adminAccess }} {{ .Pod.namespace }}/{{ .Pod.name }} {{ (last .Config).sharing }}']}`,
			v1alpha1.Edits{Env: []string{"A=n c uid-of-c true default/p MPS"}},
		},
		"device": {
			`{env: ['{{ .Result.device | upper }}={{ .Device.attributes.model.string }} {{ .Result.consumedCapacity.memory }}']}`,
			v1alpha1.Edits{Env: []string{"GPU-1=H100 10Gi"}},
		},
		"left empty": {
			`{env: ['{{ if false }}A=1{{ end }}', B=2], mounts: [{hostPath: /a, containerPath: '{{ "" }}'}], deviceNodes: [{path: '{{ "" }}'}]}`,
			v1alpha1.Edits{Env: []string{"B=2"}, Mounts: []v1alpha1.Mount{}, DeviceNodes: []v1alpha1.DeviceNode{}},
		},
		"mount": {
			`{mounts: [{hostPath: '/h/{{ .Claim.uid }}', containerPath: '/c/{{ .Result.device }}', options: ['{{ "ro" }}', bind], type: '{{ "tmpfs" }}'}]}`,
			v1alpha1.Edits{Mounts: []v1alpha1.Mount{{HostPath: "/h/uid-of-c", ContainerPath: "/c/gpu-1", Options: []string{"ro", "bind"}, Type: "tmpfs"}}},
		},
		"device node": {
			`{deviceNodes: [{path: '/dev/{{ .Result.device }}', hostPath: '/dev/{{ .Pod.uid }}', type: '{{ "c" }}', major: 195, minor: '{{ trimPrefix "gpu-" .Result.device }}', permissions: '{{ "rw" }}', uid: 7}]}`,
			v1alpha1.Edits{DeviceNodes: []v1alpha1.DeviceNode{{
				Path: "/dev/gpu-1", HostPath: "/dev/uid-of-p", Type: "c", Major: new(intstr.FromInt32(195)), Minor: new(intstr.FromInt32(1)), Permissions: "rw", UID: new(int64(7)),
			}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			edits := validEdits(t, "{perDevice: "+test.edits+"}")
			require.Nil(t, edits.perClaim.source)
			for range 2 { // the source does not change
				made, err := edits.perDevice.renderEdits(someContainer())
				require.NoError(t, err)
				require.Equal(t, &test.want, made)
			}
		})
	}
}

// TestRenderEditsOfAll: what is made for a claim or a request sees all of its devices.
func TestRenderEditsOfAll(t *testing.T) {
	t.Parallel()
	edits := validEdits(t, `{perClaim: {env: ['ALL={{ range .Devices }}{{ .Device.attributes.model.string }}={{ .Result.device }} {{ end }}']}, perRequest: {env: ['OF={{ .Request }} {{ len .Devices }}']}}`)
	made, err := edits.perClaim.renderEdits(someContainer())
	require.NoError(t, err)
	require.Equal(t, []string{"ALL=H100=gpu-1 "}, made.Env)
	made, err = edits.perRequest.renderEdits(someContainer())
	require.NoError(t, err)
	require.Equal(t, []string{"OF=gpu 1"}, made.Env)
}

func TestRenderEditsFails(t *testing.T) {
	t.Parallel()
	const at = "spec.containerEdits.perDevice."
	for name, test := range map[string]struct{ edits, want string }{
		"missing":          {`{env: ['A={{ .Node.metadata.labels.rack }}']}`, at + `env[0]: Invalid value: "A={{ .Node.metadata.labels.rack }}": reads a field that is not there; give a fallback with or`},
		"no variable":      {`{env: ['{{ .Claim.name }}']}`, at + `env[0]: Invalid value: "c": must be NAME=value`},
		"relative":         {`{mounts: [{hostPath: /a, containerPath: '{{ .Claim.name }}'}]}`, at + `mounts[0].containerPath: Invalid value: "c": must be an absolute path; use "/c"`},
		"no number":        {`{deviceNodes: [{path: /dev/a, minor: '{{ .Claim.name }}'}]}`, at + `deviceNodes[0].minor: Invalid value: "c": must be a number, or a template that yields one`},
		"no type":          {`{deviceNodes: [{path: /dev/a, type: '{{ .Claim.uid }}'}]}`, at + `deviceNodes[0].type: Invalid value: "uid-of-c": must be b, c, u or p`},
		"index":            {`{env: ['A={{ index .Config 7 }}']}`, `error calling index`},
		"mount of nothing": {`{mounts: [{hostPath: '{{ "" }}', containerPath: /a}]}`, at + `mounts[0].hostPath: Required value`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := validEdits(t, "{perDevice: "+test.edits+"}").perDevice.renderEdits(someContainer())
			require.ErrorContains(t, err, test.want)
		})
	}
}

// TestEditsRefused: templates are refused when they are read.
func TestEditsRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ edits, want string }{
		"no template":          {`{perClaim: {env: ['A={{ .']}}`, `spec.containerEdits.perClaim.env[0]: Invalid value: "A={{ .": is no valid template`},
		"unknown function":     {`{perDevice: {mounts: [{hostPath: '{{ uper "a" }}', containerPath: /a}]}}`, `spec.containerEdits.perDevice.mounts[0].hostPath: Invalid value: "{{ uper \"a\" }}": is no valid template: function "uper" is not supported; did you mean upper?`},
		"unstable function":    {`{perRequest: {deviceNodes: [{path: /a, major: '{{ now }}'}]}}`, `spec.containerEdits.perRequest.deviceNodes[0].major: Invalid value`},
		"device for a claim":   {`{perClaim: {env: ['A={{ .Device.name }}']}}`, `there is no .Device here; did you mean .Devices?`},
		"request for a device": {`{perDevice: {env: ['A={{ .Request }}']}}`, `there is no .Request here`},
		"field of a claim":     {`{perDevice: {env: ['A={{ .Claim.admin }}']}}`, `there is no .Claim.admin here`},
		"field of a device":    {`{perClaim: {env: ['A={{ range .Devices }}{{ .Device.nme }}{{ end }}']}}`, `there is no`},
		"too much":             {`{perClaim: {env: ['A={{ repeat 70000 "x" }}']}}`, "takes too much time or memory"},
		"no variable":          {`{perClaim: {env: [A]}}`, `spec.containerEdits.perClaim.env[0]: Invalid value: "A": must be NAME=value`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, errs := compileEdits(t, test.edits)
			require.Len(t, errs, 1)
			require.ErrorContains(t, errs[0], test.want)
			require.True(t, devices.StandsAlone(errs[0].Field))
		})
	}
}
