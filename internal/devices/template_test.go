package devices

import (
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kwok-dra/kwok-dra/internal/devices/gotemplate"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
)

func TestCompileRefuses(t *testing.T) {
	t.Parallel()
	const attribute = "spec.devices[0].attributes[a]"
	for name, test := range map[string]struct {
		spec, path, want string
	}{
		"what Validate refuses": {"driver: d\ndevices: []", "spec.devices", "at least one"},
		"unclosed action":       {oneGPU(`a: "{{ .Index"`), attribute, "is no valid template"},
		"unknown function":      {oneGPU(`a: "{{ nonsense .Index }}"`), attribute, `function "nonsense" is not supported`},
		"unknown variable":      {oneGPU(`a: "{{ $i }}"`), attribute, "undefined variable"},
		"end alone":             {oneGPU(`a: "{{end}}"`), attribute, "is no valid template"},
		"end and define":        {oneGPU(`a: 'x{{end}}y{{define "z"}}w'`), attribute, "is no valid template"},
		"redefinition":          {oneGPU(`a: 'x{{end}}{{define "spec.poolName"}}y'`), attribute, "is no valid template"},
		"define":                {oneGPU(`a: '{{define "z"}}w{{end}}'`), attribute, "is no valid template"},
		"block":                 {oneGPU(`a: '{{block "z" .}}w{{end}}'`), attribute, "is no valid template"},
		"end and if":            {oneGPU(`a: 'x{{end}}{{if true}}w'`), attribute, "is no valid template"},
		"itself":                {oneGPU(`a: '{{- template "spec.devices[0].attributes[a]" .}}'`), attribute, "are not supported"},
		"break of the range":    {oneGPU(`a: "{{break}}"`), attribute, "is no valid template"},
		"unclosed if":           {oneGPU(`a: "{{if true}}a"`), attribute, "is no valid template"},
		"unclosed comment":      {oneGPU(`a: "{{/* a"`), attribute, "is no valid template"},
		"unclosed text":         {oneGPU(`a: '{{ "a'`), attribute, "is no valid template"},
		"text across the end":   {oneGPU("a: '{{ `a'"), attribute, "is no valid template"},
		"in an int":             {oneGPU(`a: {int: "{{ nonsense }}"}`), attribute, "not supported"},
		"in a capacity":         {"driver: d\ndevices: [{name: gpu, capacity: {m: '{{ nonsense }}'}}]", "spec.devices[0].capacity[m]", "not supported"},
		"in the pool name":      {"driver: d\npoolName: '{{ nonsense }}'\ndevices: [{name: gpu}]", "spec.poolName", "not supported"},
		"bad publishWhen":       {"driver: d\npublishWhen: {matchExpressions: [{jq: {key: '[', operator: Exists}}]}\ndevices: [{name: gpu}]", "spec.publishWhen.matchExpressions[0]", "does not compile"},
		"bad retireWhen":        {"driver: d\nretireWhen: {matchExpressions: [{cel: {expression: '='}}]}\ndevices: [{name: gpu}]", "spec.retireWhen.matchExpressions[0]", "does not compile"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, errs := Compile(source(t, "t", test.spec))
			require.Len(t, errs, 1)
			require.Equal(t, test.path, errs[0].Field)
			require.ErrorContains(t, errs[0], test.want)
		})
	}
}

func TestCompileReportsEveryProblem(t *testing.T) {
	t.Parallel()
	_, errs := Compile(source(t, "t", `
driver: d
poolName: "{{ nonsense }}"
publishWhen: {matchExpressions: [{cel: {expression: "="}}]}
devices:
- {name: a, attributes: {x: "{{ nonsense }}", z: "{{ .Index"}}
- {name: b, capacity: {m: "{{end}}"}}
`))
	var got []string
	for _, err := range errs {
		got = append(got, err.Field)
	}
	require.ElementsMatch(t, []string{
		"spec.poolName", "spec.publishWhen.matchExpressions[0]",
		"spec.devices[0].attributes[x]", "spec.devices[0].attributes[z]", "spec.devices[1].capacity[m]",
	}, got)
}

// TestUnstableFunctionsAreRefused: what differs from call to call would have
// every slice written again in every reconciliation.
func TestUnstableFunctionsAreRefused(t *testing.T) {
	t.Parallel()
	for _, action := range []string{
		"Now", "StartTime", "now", "now | date \"2006\"", "ago (toDate \"2006\" \"2020\")", "htmlDate 0", "randAlpha 3", "randAlphaNum 3",
		"randAscii 3", "randNumeric 3", "randBytes 3", "randInt 0 9", "shuffle \"abc\"", "uuidv4", "bcrypt \"a\"", "htpasswd \"a\" \"b\"",
		"genPrivateKey \"rsa\"", "(genCA \"a\" 1).Cert", "getHostByName \"localhost\"", "env \"HOME\"", "expandenv \"$HOME\"",
		"encryptAES \"a\" \"b\"", "dateInZone \"2006\" 0 \"UTC\"",
	} {
		_, errs := Compile(source(t, "t", oneGPU(`a: '{{ `+action+` }}'`)))
		require.Len(t, errs, 1, action)
		require.Equal(t, "spec.devices[0].attributes[a]", errs[0].Field)
		require.ErrorContains(t, errs[0], "result differs from call to call; use uuid or values of .Node instead", action)
	}
}

// TestStableFunctions renders often enough for a map's random order to show.
func TestStableFunctions(t *testing.T) {
	t.Parallel()
	node := newNode("n", map[string]string{"a": "1", "b": "2", "c": "3", "d": "4", "e": "5", "f": "6"})
	for action, want := range map[string]string{
		`keys .Node.metadata.labels | join ""`:                     "abcdef",
		`values .Node.metadata.labels | join ""`:                   "123456",
		`keys .Node.metadata.labels | sortAlpha | join ""`:         "abcdef",
		`keys (dict "b" 1) (dict "a" 2) | join ""`:                 "ba",
		`range $k, $v := .Node.metadata.labels}}{{$k}}{{$v}}{{end`: "a1b2c3d4e5f6",
		`toJson (pick .Node.metadata.labels "b" "a")`:              `{"a":"1","b":"2"}`,
		`sha256sum .Node.metadata.name | trunc 8`:                  "1b16b1df",
		`uuid "a" | trunc 8`:                                       uuidOf(t, "a")[:8],
	} {
		compiled := compile(t, "t", oneGPU(`a: '{{ `+action+` }}'`))
		for range 20 {
			got := render(t, node, compiled)[0].Devices[0].Attributes["a"].StringValue
			require.Equal(t, want, *got, action)
		}
	}
}

func TestRender(t *testing.T) {
	t.Parallel()
	compiled := compile(t, "t", `
driver: gpu.example.com
devices:
- name: gpu
  count: 2
  attributes:
    model: H100
    index: {int: "{{ .Index }}"}
    first: {bool: "{{ eq .Index 0 }}"}
    firmware: {version: "1.{{ add .Index 1 }}.0"}
    zone: "{{ .Node.metadata.labels.zone }}"
    slashed: '{{ index .Node.metadata.labels "example.com/rack" }}'
    uuid: "GPU-{{ uuid .Node.metadata.uid .Index }}"
    cpus: {int: "{{ .Node.status.capacity.cpu }}"}
  capacity: {memory: 80Gi, bandwidth: "{{ mul 2 (add .Index 1) }}G"}
  taints: [{key: a, effect: NoSchedule}]
- name: nic
  attributes: {index: {int: "{{ .Index }}"}}
  allowMultipleAllocations: true
  bindsToNode: false
  bindingConditions: [example.com/attached]
  bindingFailureConditions: [example.com/failed, example.com/gone]
`)
	node := newNode("n1", map[string]string{"zone": "z1", "example.com/rack": "r1"})
	node.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8")}
	pools := render(t, node, compiled)
	require.Len(t, pools, 1)
	require.Equal(t, "n1", pools[0].Name)
	require.Equal(t, "gpu.example.com", pools[0].Driver)
	require.Equal(t, []*Template{compiled}, pools[0].Templates)
	gpu := func(name string, index int64, firmware, bandwidth string) resourcev1.Device {
		return resourcev1.Device{
			Name: name,
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				"model":    {StringValue: new("H100")},
				"index":    {IntValue: &index},
				"first":    {BoolValue: new(index == 0)},
				"firmware": {VersionValue: &firmware},
				"zone":     {StringValue: new("z1")},
				"slashed":  {StringValue: new("r1")},
				"uuid":     {StringValue: new("GPU-" + uuidOf(t, "uid-of-n1", index))},
				"cpus":     {IntValue: new(int64(8))},
			},
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{
				"memory":    {Value: resource.MustParse("80Gi")},
				"bandwidth": {Value: resource.MustParse(bandwidth)},
			},
			Taints: []resourcev1.DeviceTaint{{Key: "a", Effect: "NoSchedule"}},
		}
	}
	want := []resourcev1.Device{
		gpu("gpu-0", 0, "1.1.0", "2G"),
		gpu("gpu-1", 1, "1.2.0", "4G"),
		{
			Name: "nic", Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"index": {IntValue: new(int64(0))}},
			AllowMultipleAllocations: new(true), BindsToNode: new(false), BindingConditions: []string{"example.com/attached"},
			BindingFailureConditions: []string{"example.com/failed", "example.com/gone"},
		},
	}
	require.Empty(t, cmp.Diff(want, pools[0].Devices))
}

func TestRenderErrors(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ spec, want string }{
		"missing label":     {oneGPU(`a: "{{ .Node.metadata.labels.zone }}"`), "the Node lacks a field that this reads; give a fallback"},
		"missing map":       {oneGPU(`a: "{{ .Node.metadata.annotations.zone }}"`), "the Node lacks a field"},
		"missing int":       {oneGPU(`a: {int: "{{ .Node.metadata.labels.zone }}"}`), "the Node lacks a field"},
		"missing capacity":  {"driver: d\ndevices: [{name: gpu, capacity: {a: '{{ .Node.status.capacity.gpu }}'}}]", "the Node lacks a field"},
		"missing in a UUID": {oneGPU(`a: "{{ uuid .Node.metadata.labels.zone .Index }}"`), "spec.devices[0].attributes[a]\" at <uuid .Node.metadata.labels.zone .Index>: error calling uuid: argument 1 is a field that the Node lacks"},
		"no int":            {oneGPU(`a: {int: "{{ .Node.metadata.name }}"}`), `"n1": must be an integer`},
		"no bool":           {oneGPU(`a: {bool: "{{ .Node.metadata.name }}"}`), `"n1": must be true or false`},
		"no version":        {oneGPU(`a: {version: "{{ .Node.metadata.name }}"}`), `"n1": must be a version`},
		"too long":          {oneGPU(`a: "{{ repeat 65 .Node.metadata.name }}"`), "must be at most 64 bytes, is 130"},
		"no quantity":       {"driver: d\ndevices: [{name: gpu, capacity: {a: '{{ .Node.metadata.name }}'}}]", `"n1": must be a quantity`},
		"fails":             {oneGPU(`a: "{{ fail .Node.metadata.name }}"`), "n1"},
		"NUL":               {oneGPU(`a: '{{ .Node.metadata.name }}{{ "\x00" }}'`), "NUL"},
		"half a character":  {oneGPU(`a: '{{ trunc 3 (print "éé" .Node.metadata.name) }}'`), "a value rendered a part of a character, not UTF-8"},
		"bad pool name":     {"driver: d\npoolName: '{{ .Node.metadata.name }}_'\ndevices: [{name: gpu}]", `spec.poolName: Invalid value: "n1_"`},
		"no pool name":      {"driver: d\npoolName: '{{ .Node.metadata.labels.pool }}'\ndevices: [{name: gpu}]", "spec.poolName: Invalid value"},
		"empty pool name":   {"driver: d\npoolName: '{{ with .Node.metadata.labels.pool }}{{ . }}{{ end }}'\ndevices: [{name: gpu}]", "spec.poolName: Invalid value"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Pools([]*Template{compile(t, "mine", test.spec)}, lifecycle.NewObject(newNode("n1", nil)))
			require.ErrorContains(t, err, "render template mine: ")
			require.ErrorContains(t, err, test.want)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

// TestRenderErrorNamesTheField: with many devices the message must say which.
func TestRenderErrorNamesTheField(t *testing.T) {
	t.Parallel()
	compiled := compile(t, "mine", `
driver: d
devices:
- name: nic
- {name: gpu, count: 3, attributes: {x: {int: "{{ if .Node.metadata.name | and (lt .Index 2) }}1{{ end }}"}}}
`)
	_, err := Pools([]*Template{compiled}, lifecycle.NewObject(newNode("n1", nil)))
	require.EqualError(t, err, `render template mine: device gpu-2: spec.devices[1].attributes[x]: Invalid value: "": must be an integer of 64 bits, for example 42`)
}

// TestTextAroundTemplatesStays: kwok's renderer trims, values are not to be.
func TestTextAroundTemplatesStays(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		" {{ .Index }} ":          " 0 ",
		"a {{- .Index -}} b":      "a0b",
		"{{/* nothing */}}":       "",
		"{{ if false }}{{ end }}": "",
		"{{ \"{{\" }}":            "{{",
		"}}{{ .Index }}":          "}}0",
		"{{ .Index }}\n":          "0\n",
	} {
		template := source(t, "t", "driver: d\ndevices: [{name: gpu, attributes: {a: x, b: '{{ .Index }}'}}]")
		attribute := template.Spec.Devices[0].Attributes["a"]
		attribute.Value = value
		template.Spec.Devices[0].Attributes["a"] = attribute
		compiled, errs := Compile(template)
		require.Empty(t, errs)
		got := render(t, newNode("n", nil), compiled)[0].Devices[0].Attributes
		require.Equal(t, want, *got["a"].StringValue, value)
		require.Equal(t, "0", *got["b"].StringValue, "the neighbour of %s", value)
	}
}

// TestRenderShares renders one template for many nodes at once. Equal input
// gives equal pools, and the race detector sees writes to shared maps.
func TestRenderShares(t *testing.T) {
	t.Parallel()
	templates := []*Template{
		compile(t, "a", "driver: d\ndevices: [{name: fixed, count: 4, attributes: {model: X}, capacity: {m: 1Gi}, taints: [{key: a, effect: NoSchedule}]}]"),
		compile(t, "b", `{driver: d, devices: [{name: own, count: 4, attributes: {model: X, uuid: "{{ uuid .Node.metadata.uid .Index }}"}, capacity: {m: 1Gi}}]}`),
	}
	nodes := []*corev1.Node{newNode("n0", nil), newNode("n1", nil)}
	want := [][]Pool{render(t, nodes[0], templates...), render(t, nodes[1], templates...)}
	require.NotEqual(t, want[0][0].Devices, want[1][0].Devices)
	var running sync.WaitGroup
	for i := range 8 {
		running.Go(func() {
			for range 10 {
				got, err := Pools(templates, lifecycle.NewObject(nodes[i%2]))
				if diff := cmp.Diff(want[i%2][0].Devices, got[0].Devices); diff != "" || err != nil {
					t.Errorf("node %d: %s %v", i%2, diff, err)
				}
			}
		})
	}
	running.Wait()
}

func uuidOf(t *testing.T, arguments ...any) string {
	t.Helper()
	made, err := gotemplate.UUID(arguments...)
	require.NoError(t, err)
	return made
}

func TestSelectsAndUses(t *testing.T) {
	t.Parallel()
	all := compile(t, "a", "driver: d\ndevices: [{name: gpu}]")
	some := compile(t, "b", "driver: d\nnodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [z1]}]}]}\n"+
		"devices: [{name: gpu}, {name: nic, taints: [{key: a, effect: NoSchedule}]}]")
	named := compile(t, "c", "driver: d\nnodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [n1]}]}]}\ndevices: [{name: gpu}]")
	for _, node := range []*corev1.Node{newNode("n1", nil), newNode("n2", map[string]string{"zone": "z1"})} {
		require.True(t, all.Selects(node))
		require.Equal(t, node.Name == "n2", some.Selects(node))
		require.Equal(t, node.Name == "n1", named.Selects(node))
	}
	advanced := func(p *Pool) bool { return maxDevices(p.Devices) < resourcev1.ResourceSliceMaxDevices }
	require.False(t, all.Uses(advanced))
	require.True(t, some.Uses(advanced))
	require.NotNil(t, compile(t, "d", "driver: d\npublishWhen: {}\nretireWhen: {}\ndevices: [{name: gpu}]").PublishWhen)
	require.Nil(t, all.RetireWhen)
}

// FuzzTemplate: no text in place of a value makes Compile or render panic, or
// changes what its neighbour renders.
func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{
		"{{ .Index }}", "{{", "}}", "{{end}}", `{{define "a"}}{{end}}`, `x{{end}}y{{define "z"}}w`, "{{/*", "{{ `", `{{ "`, "{{break}}",
		"{{ range .Node.metadata.labels }}{{ . }}{{ end }}", `{{template "spec.poolName" .}}`, "{{ $.Index }}", "{{- 1 -}}", "\x00{{1}}",
		`{{ index . "Node" }}`, "{{ . }}", "{{ fail \"a\" }}", "{{ uuid .Node.metadata.uid }}", "{{end}}{{if true}}", "{{else}}", `{{"}}"}}`,
	} {
		f.Add(seed)
	}
	f.Add(`{{ range 9223372036854775807 }}{{ end }}`)
	f.Add(`{{ repeat 100000 "x" }}`)
	node := lifecycle.NewObject(newNode("n", map[string]string{"a": "b"}))
	f.Fuzz(func(t *testing.T, value string) {
		template := source(t, "t", "driver: d\ndevices: [{name: gpu, count: 2, attributes: {a: x, b: 'b{{ .Index }}'}}]")
		attribute := template.Spec.Devices[0].Attributes["a"]
		attribute.Value = value
		template.Spec.Devices[0].Attributes["a"] = attribute
		compiled, errs := Compile(template)
		if len(errs) > 0 {
			return
		}
		pools, err := Pools([]*Template{compiled}, node)
		if err != nil {
			return
		}
		require.Equal(t, "n", pools[0].Name)
		require.Equal(t, "b0", *pools[0].Devices[0].Attributes["b"].StringValue)
		require.Equal(t, "b1", *pools[0].Devices[1].Attributes["b"].StringValue)
	})
}
