package devices

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// editsOf compiles a template with containerEdits, in YAML's flow style.
func editsOf(t testing.TB, containerEdits string) ContainerEdits {
	t.Helper()
	return compile(t, "t", "driver: d\ndevices: [{name: gpu, count: 4}]\ncontainerEdits: "+containerEdits+"\n").ContainerEdits
}

// someContainer has the device of someAllocated.
func someContainer() *Container {
	a := someAllocated()
	a.Result.ConsumedCapacity = map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse("10Gi")}
	return &Container{
		Node: a.Node, Claim: AllocatedClaim{Object: a.Claim, AdminAccess: true}, Pod: a.Pods[0], Config: a.Config,
		Device: a.Device, Result: a.Result, Request: "gpu", Devices: []AllocatedDevice{{a.Device, a.Result}},
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
			edits := editsOf(t, "{perDevice: "+test.edits+"}")
			require.Nil(t, edits.PerClaim)
			for range 2 { // the source does not change
				made, err := edits.PerDevice.Render(someContainer())
				require.NoError(t, err)
				require.Equal(t, &test.want, made)
			}
		})
	}
}

// TestRenderEditsOfAll: what is made for a claim or a request sees all of its devices.
func TestRenderEditsOfAll(t *testing.T) {
	t.Parallel()
	edits := editsOf(t, `{perClaim: {env: ['ALL={{ range .Devices }}{{ .Device.attributes.model.string }}={{ .Result.device }} {{ end }}']}, perRequest: {env: ['OF={{ .Request }} {{ len .Devices }}']}}`)
	made, err := edits.PerClaim.Render(someContainer())
	require.NoError(t, err)
	require.Equal(t, []string{"ALL=H100=gpu-1 "}, made.Env)
	made, err = edits.PerRequest.Render(someContainer())
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
			_, err := editsOf(t, "{perDevice: "+test.edits+"}").PerDevice.Render(someContainer())
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
		"too much":             {`{perClaim: {env: ['A={{ repeat 70000 "x" }}']}}`, errTooMuch.Error()},
		"no variable":          {`{perClaim: {env: [A]}}`, `spec.containerEdits.perClaim.env[0]: Invalid value: "A": must be NAME=value`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			template := source(t, "t", "driver: d\ndevices: [{name: gpu}]\ncontainerEdits: "+test.edits+"\n")
			_, errs := Compile(template)
			require.Len(t, errs, 1)
			require.ErrorContains(t, errs[0], test.want)
			require.True(t, StandsAlone(errs[0].Field))
		})
	}
}
