package devices

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
)

// claimStatusOf compiles a template of driver d with the devices gpu-0 to gpu-3
// and a claimStatus, in YAML's flow style.
func claimStatusOf(t testing.TB, claimStatus string) *ClaimStatus {
	t.Helper()
	return compile(t, "t", "driver: d\ndevices: [{name: gpu, count: 4}]\nclaimStatus: "+claimStatus+"\n").ClaimStatus
}

// someAllocated is the device gpu-1 of the node n, allocated to the claim c.
func someAllocated() *Allocated {
	return &Allocated{
		Node: lifecycle.NewObject(newNode("n", map[string]string{"zone": "z1"})),
		Device: &resourcev1.Device{Name: "gpu-1", Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			"model": {StringValue: new("H100")},
		}},
		Result: &resourcev1.DeviceRequestAllocationResult{Request: "gpu", Driver: "d", Pool: "n", Device: "gpu-1"},
		Config: []runtime.RawExtension{{Raw: []byte(`{"sharing":"TimeSlicing"}`)}, {Raw: []byte(`{"sharing":"MPS"}`)}},
		Claim:  Object{Name: "c", Namespace: "default", UID: "uid-of-c"},
		Pods:   []Object{{Name: "p", Namespace: "default", UID: "uid-of-p"}, {Name: "q", Namespace: "default", UID: "uid-of-q"}},
	}
}

func TestRenderData(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ claimStatus, want string }{
		"object":            {`{data: {a: b}}`, `{"a": "b"}`},
		"empty object":      {`{data: {}}`, `{}`},
		"nested":            {`{data: {a: [{b: '{{ .Result.device }}'}, 1, true, null], c: {d: {e: '{{ .Result.pool }}'}}}}`, `{"a": [{"b": "gpu-1"}, 1, true, null], "c": {"d": {"e": "n"}}}`},
		"order of keys":     {`{data: {z: '{{ .Claim.name }}', a: '{{ .Claim.uid }}', m: ['{{ .Claim.namespace }}']}}`, `{"z": "c", "a": "uid-of-c", "m": ["default"]}`},
		"text stays text":   {`{data: {pods: '{{ len .Pods }}', t: "true"}}`, `{"pods": "2", "t": "true"}`},
		"large numbers":     {`{data: {bytes: 9007199254740993, more: 85899345920}}`, `{"bytes": 9007199254740993, "more": 85899345920}`},
		"template of YAML":  {`{data: "uuid: {{ uuid .Claim.uid }}\nconfigs: {{ len .Config }}\n"}`, `{"uuid": "2346d9ca-ecb8-5d6c-a8ac-4cb96e8f233a", "configs": 2}`},
		"template of JSON":  {`{data: '{{ toJson .Result }}'}`, `{"request": "gpu", "driver": "d", "pool": "n", "device": "gpu-1"}`},
		"numbers in YAML":   {`{data: "bytes: {{ 9007199254740993 }}"}`, `{"bytes": 9007199254740993}`},
		"device":            {`{data: {model: '{{ .Device.attributes.model.string }}'}}`, `{"model": "H100"}`},
		"config":            {`{data: {last: '{{ (last .Config).sharing }}', all: '{{ range .Config }}{{ .sharing }} {{ end }}'}}`, `{"last": "MPS", "all": "TimeSlicing MPS "}`},
		"pods":              {`{data: {pods: '{{ range .Pods }}{{ .namespace }}/{{ .name }} {{ .uid }},{{ end }}'}}`, `{"pods": "default/p uid-of-p,default/q uid-of-q,"}`},
		"node":              {`{data: {zone: '{{ .Node.metadata.labels.zone }}'}}`, `{"zone": "z1"}`},
		"missing, fallback": {`{data: {zone: '{{ or .Node.metadata.labels.rack "none" }}'}}`, `{"zone": "none"}`},
		"no template":       {`{data: {a: '}} {x'}}`, `{"a": "}} {x"}`},
		"odd keys":          {`{data: {'a"b\': '{{ .Claim.name }}', '[0]': '{{ .Claim.uid }}'}}`, `{"a\"b\\": "c", "[0]": "uid-of-c"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status := claimStatusOf(t, test.claimStatus)
			require.True(t, status.Writes)
			report, err := status.Render(someAllocated())
			require.NoError(t, err)
			require.Equal(t, compact(t, test.want), compact(t, string(report.Data.Raw)))
		})
	}
}

func TestRenderOtherParts(t *testing.T) {
	t.Parallel()
	report, err := claimStatusOf(t, `{networkData: {interfaceName: 'eth-{{ .Result.device }}', ips: ['10.0.0.{{ len .Pods }}/24', 'fd00::1/64'], hardwareAddress: '{{ .Claim.name }}'},
  cdiDeviceIDs: ['k8s.d/gpu={{ .Result.device }}', all]}`).Render(someAllocated())
	require.NoError(t, err)
	require.Equal(t, &Report{
		NetworkData:  &resourcev1.NetworkDeviceData{InterfaceName: "eth-gpu-1", IPs: []string{"10.0.0.2/24", "fd00::1/64"}, HardwareAddress: "c"},
		CDIDeviceIDs: []string{"k8s.d/gpu=gpu-1", "all"},
	}, report)

	report, err = claimStatusOf(t, `{}`).Render(someAllocated())
	require.NoError(t, err)
	require.Equal(t, &Report{}, report)
}

func TestRenderFails(t *testing.T) {
	t.Parallel()
	const lacks = "reads a field that is not there; give a fallback with or"
	for name, test := range map[string]struct{ claimStatus, want string }{
		"missing in data":         {`{data: {a: {b: ['{{ .Node.metadata.labels.rack }}']}}}`, "spec.claimStatus.data[a][b][0]: Invalid value: \"{{ .Node.metadata.labels.rack }}\": " + lacks},
		"missing in YAML":         {`{data: "zone: {{ .Node.metadata.labels.rack }}"}`, "spec.claimStatus.data: Invalid value: \"zone: {{ .Node.metadata.labels.rack }}\": " + lacks},
		"missing in network data": {`{networkData: {interfaceName: '{{ .Device.attributes.nickname }}'}}`, "spec.claimStatus.networkData.interfaceName: Invalid value: \"{{ .Device.attributes.nickname }}\": " + lacks},
		"missing in CDI id":       {`{cdiDeviceIDs: ['{{ .Device.attributes.nickname }}']}`, "spec.claimStatus.cdiDeviceIDs[0]: Invalid value: \"{{ .Device.attributes.nickname }}\": " + lacks},
		"field of nothing":        {`{data: {a: '{{ (index .Pods 0).name.first }}'}}`, `can't evaluate field first`},
		"index out of range":      {`{data: {a: '{{ (index .Pods 7).name }}'}}`, `error calling index`},
		"invalid address":         {`{networkData: {ips: ['{{ .Claim.name }}']}}`, `spec.claimStatus.networkData.ips[0]: Invalid value: "c": must be a valid address in CIDR form`},
		"address without mask":    {`{networkData: {ips: ['10.0.0.{{ len .Pods }}']}}`, `spec.claimStatus.networkData.ips[0]: Invalid value: "10.0.0.2": must be a valid address in CIDR form`},
		"address twice":           {`{networkData: {ips: ['10.0.0.{{ len .Pods }}/24', '10.0.0.2/24']}}`, `spec.claimStatus.networkData.ips[1]: Duplicate value: "10.0.0.2/24"`},
		"name too long":           {`{networkData: {interfaceName: '{{ repeat 257 "x" }}'}}`, `spec.claimStatus.networkData.interfaceName: Invalid value: "` + strings.Repeat("x", 257) + `": must be at most 256 characters, is 257`},
		"YAML of a list":          {`{data: '[{{ .Claim.name }}]'}`, `spec.claimStatus.data: Invalid value: "[c]": must yield an object in YAML or JSON`},
		"YAML of null":            {`{data: '{{ "null" }}'}`, `must yield an object in YAML or JSON`},
		"no YAML":                 {`{data: '{{ .Claim.name }}: ['}`, `must yield an object in YAML or JSON`},
		"NUL":                     {`{data: {a: '{{ printf "a%cb" 0 }}'}}`, `a value rendered a NUL character`},
		"half a character":        {`{data: {a: '{{ trunc 3 "éé" }}'}}`, `a value rendered a part of a character, not UTF-8`},
		"too large":               {`{data: {a: '{{ repeat 10240 "x" }}'}}`, `spec.claimStatus.data: Too long: may not be more than 10240 bytes`},
		"all problems at once":    {`{data: {a: '{{ .Device.attributes.x }}'}, cdiDeviceIDs: ['{{ .Device.attributes.y }}']}`, `spec.claimStatus.cdiDeviceIDs[0]: Invalid value: "{{ .Device.attributes.y }}": ` + lacks},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := claimStatusOf(t, test.claimStatus).Render(someAllocated())
			require.ErrorContains(t, err, test.want)
		})
	}
}

// TestDataJustFits: the limit is that of the API server, on the JSON.
func TestDataJustFits(t *testing.T) {
	t.Parallel()
	for size, fits := range map[int]bool{10240: true, 10241: false} {
		_, err := claimStatusOf(t, fmt.Sprintf(`{data: {a: '{{ repeat %d "x" }}'}}`, size-len(`{"a":""}`))).Render(someAllocated())
		require.Equal(t, fits, err == nil, size)
	}
}

func TestClaimStatusRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ claimStatus, want string }{
		"no template":    {`{data: {a: '{{ .Node '}}`, `spec.claimStatus.data[a]: Invalid value: "{{ .Node ": is no valid template: `},
		"no function":    {`{data: {a: '{{ nosuch }}'}}`, `function "nosuch" is not supported`},
		"time":           {`{data: {a: '{{ Now }}'}}`, `spec.claimStatus.data[a]: Invalid value: "{{ Now }}": uses a function whose result differs from call to call`},
		"random":         {`{cdiDeviceIDs: ['{{ randAlpha 5 }}']}`, `spec.claimStatus.cdiDeviceIDs[0]: Invalid value: "{{ randAlpha 5 }}": uses a function whose result differs`},
		"random, nested": {`{data: {a: [{b: '{{ uuidv4 }}'}]}}`, `spec.claimStatus.data[a][0][b]: Invalid value: "{{ uuidv4 }}": uses a function whose result differs`},
		"network":        {`{networkData: {interfaceName: '{{ now }}'}}`, `spec.claimStatus.networkData.interfaceName: Invalid value: "{{ now }}": uses a function whose result differs`},
		"define":         {`{data: {a: '{{ define "x" }}{{ end }}'}}`, `define, block and template are not supported`},
		"ends its part":  {`{data: {a: '{{ end }}'}}`, `is no valid template`},
		"text as data":   {`{data: hello}`, `spec.claimStatus.data: Invalid value: "hello": must be an object, or a template that yields one`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, errs := Compile(source(t, "t", "driver: d\ndevices: [{name: gpu}]\nclaimStatus: "+test.claimStatus+"\n"))
			require.ErrorContains(t, errs.ToAggregate(), test.want)
		})
	}
}

func TestWrites(t *testing.T) {
	t.Parallel()
	for claimStatus, want := range map[string]bool{
		`{}`:                               true,
		`{mode: Ready}`:                    true,
		`{mode: None}`:                     false,
		`{mode: None, data: {}}`:           true,
		`{mode: None, networkData: {}}`:    true,
		`{mode: None, cdiDeviceIDs: [id]}`: false,
	} {
		require.Equal(t, want, claimStatusOf(t, claimStatus).Writes, claimStatus)
	}
}

// TestReads: what is handed on as a whole may be read in any part.
func TestReads(t *testing.T) {
	t.Parallel()
	for template, want := range map[string]string{
		`{{ .Claim.name }}`:                            "",
		`{{ .Result.device }}`:                         "",
		`{{ .Pods }}`:                                  "Pods",
		`{{ (index .Pods 0).name }}`:                   "Pods",
		`{{ $.Device.name }}`:                          "Device",
		`{{ .Node.metadata.name }}`:                    "Node",
		`{{ range .Pods }}{{ $.Node.spec }}{{ end }}`:  "Pods Node",
		`{{ toJson . }}`:                               "Device Pods Node",
		`{{toJson .}}`:                                 "Device Pods Node",
		`{{.|toJson}}`:                                 "Device Pods Node",
		`{{ toJson $ }}`:                               "Device Pods Node",
		`{{ index . "Po" }}`:                           "Device Pods Node",
		`{{ $x := . }}{{ toJson $x }}`:                 "Device Pods Node",
		`{{$x:=.}}{{toJson $x}}`:                       "Device Pods Node",
		`{{$x:=$}}{{toJson $x}}`:                       "Device Pods Node",
		"{{ toJson\n.\n}}":                             "Device Pods Node",
		`{{ toJson (.) }}`:                             "Device Pods Node",
		`{{- . -}}`:                                    "Device Pods Node",
		`{{ range .Config }}{{ . }}{{ end }}`:          "Device Pods Node",
		`{{ range $k, $v := . }}{{ $v }}{{ end }}`:     "Device Pods Node",
		`{{ with .Config }}{{ (index . 0).a }}{{end}}`: "Device Pods Node",
	} {
		status := claimStatusOf(t, fmt.Sprintf("{data: {a: %q}}", template))
		var got []string
		for _, part := range []struct {
			name string
			read bool
		}{{"Device", status.UsesDevice}, {"Pods", status.UsesPods}, {"Node", status.usesNode}} {
			if part.read {
				got = append(got, part.name)
			}
		}
		require.ElementsMatch(t, strings.Fields(want), got, template)
	}
}

// TestNodeIsLeftOut where no template reads it: to encode it would cost more than
// all the rest.
func TestNodeIsLeftOut(t *testing.T) {
	t.Parallel()
	given, err := claimStatusOf(t, `{data: {a: '{{ .Claim.name }}'}}`).dataFor(someAllocated())
	require.NoError(t, err)
	require.NotContains(t, given, "Node")
	given, err = claimStatusOf(t, `{data: {a: '{{ .Claim.name }}', b: '{{ toJson . }}'}}`).dataFor(someAllocated())
	require.NoError(t, err)
	require.Contains(t, given, "Node")

	status := claimStatusOf(t, `{data: {a: '{{ .Node.metadata.name }}{{ .Device.name }}{{ .Pods }}', b: '{{ .Claim.name }}'}}`)
	require.True(t, status.UsesDevice && status.UsesPods && status.usesNode, "what one template reads counts for all")
}

// FuzzClaimStatus: whatever a template says, it is refused, fails or renders, the
// same each time. And what it does not read, by reads, does not show.
func FuzzClaimStatus(f *testing.F) {
	for _, seed := range []string{
		"{{ .Device.name }}", "{{ toJson . }}", "{{$x:=.}}{{$x}}", "a: {{ len .Pods }}", "{{ range .Config }}{{ . }}{{ end }}", "{{ end }}", "{{", "{{/* a */}}",
		"{{ template \"x\" }}", "{{ index .Pods 9 }}", "{{ .Node.a.b }}", "\x00{{ . }}", "{{ printf \"%d\" .Result }}", "{{ fail \"no\" }}", "{{ keys .Claim }}", "{{break}}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, template string) {
		if strings.Contains(template, "repeat") || strings.Contains(template, "until") || strings.Contains(template, "seq") {
			t.Skip("may take all memory there is")
		}
		pool := source(t, "t", "driver: d\ndevices: [{name: gpu}]\nclaimStatus: {data: {}, cdiDeviceIDs: [x]}\n")
		pool.Spec.ClaimStatus.CDIDeviceIDs[0] = template
		compiled, errs := Compile(pool)
		if len(errs) > 0 {
			return
		}
		status := compiled.ClaimStatus
		report, err := status.Render(someAllocated())
		if err != nil {
			return
		}
		other := someAllocated()
		if !status.UsesDevice {
			other.Device = nil
		}
		if !status.UsesPods {
			other.Pods = nil
		}
		if !status.usesNode {
			other.Node = lifecycle.NewObject(newNode("other", nil))
		}
		again, err := status.Render(other)
		require.NoError(t, err)
		require.Equal(t, report, again)
	})
}
