package record

import (
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cluster"
)

// entry is an entry in the status of the claim of a device, and what its driver
// has returned.
type entry struct {
	device, status string
	ids            []string
	edits          []any
}

// observed are devices on one node, each with a claim of its own.
func observed(t *testing.T, entries []entry) []*prepared {
	t.Helper()
	var all []*prepared
	for i, e := range entries {
		number := string(rune('0' + i))
		p := &prepared{
			node:   &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "real", UID: "node-uid"}},
			claim:  &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "claim-" + number, UID: types.UID("claim-uid-" + number)}},
			result: &resourcev1.DeviceRequestAllocationResult{Request: "gpu", Driver: "gpu.example.com", Pool: "real", Device: e.device},
			device: &resourcev1.Device{Name: e.device},
			ids:    e.ids, edits: e.edits,
		}
		p.claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "pod-" + number, UID: types.UID("pod-uid-" + number)}}
		index := int64(e.device[len(e.device)-1] - '0')
		model, version := "LATEST-GPU-MODEL", "1.0.0"
		p.device.Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			"index": {IntValue: &index}, "model": {StringValue: &model}, "example.com/driverVersion": {VersionValue: &version},
		}
		if e.status != "" {
			p.entry = &resourcev1.AllocatedDeviceStatus{}
			require.NoError(t, yaml.UnmarshalStrict([]byte(e.status), p.entry))
		}
		all = append(all, p)
	}
	return all
}

func TestLearn(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		entries []entry
		want    string
		notes   []string
		edits   string
	}{
		"nothing to learn from":        {nil, "null", []string{"claimStatus is not recorded: no claim has a device of this pool; run a Pod on the node"}, ""},
		"a driver that writes nothing": {[]entry{{device: "gpu-0"}}, "{mode: None}", nil, ""},
		"attributes": {
			[]entry{{device: "gpu-0", status: `{data: {model: {string: LATEST-GPU-MODEL}, driverVersion: {version: 1.0.0}, vendor: ACME}}`}},
			"{mode: None, data: {model: {string: '{{ .Device.attributes.model.string }}'}, driverVersion: {version: '{{ (index .Device.attributes `example.com/driverVersion`).version }}'}, vendor: ACME}}", nil, "",
		},
		"names within texts": {
			[]entry{{device: "gpu-0", status: `{data: {path: /run/real/gpu-0, for: default/claim-0/pod-0}}`}, {device: "gpu-1", status: `{data: {path: /run/real/gpu-1, for: default/claim-1/pod-1}}`}},
			`{mode: None, data: {path: '/run/{{ .Node.metadata.name }}/{{ .Device.name }}', for: 'default/{{ .Claim.name }}/{{ (index .Pods 0).name }}'}}`, nil, "",
		},
		"numbers": {
			[]entry{{device: "gpu-0", status: `{data: {index: 0, size: 0, many: 10}}`}, {device: "gpu-1", status: `{data: {index: 1, size: 0, many: 10}}`}},
			`{mode: None, data: "{\n  \"index\": {{ .Device.attributes.index.int }},\n  \"many\": 10,\n  \"size\": 0\n}\n"}`, nil, "",
		},
		"a number that is no index": {
			[]entry{{device: "gpu-0", status: `{data: {minor: 0, active: true, none: null}}`}}, `{mode: None, data: {minor: 0, active: true, none: null}}`, nil, "",
		},
		"a condition and a network": {
			[]entry{
				{device: "gpu-0", status: `{conditions: [{type: Ready, status: "True", reason: Prepared, message: "", lastTransitionTime: null}], networkData: {interfaceName: eth0, ips: [10.0.0.1/24]}}`},
				{device: "gpu-1", status: `{conditions: [{type: Ready, status: "True", reason: Prepared, message: "", lastTransitionTime: null}], networkData: {interfaceName: eth1, ips: [10.0.0.1/24]}}`},
			},
			`{mode: Ready, networkData: {interfaceName: "eth{{ .Device.attributes.index.int }}", ips: [10.0.0.1/24]}}`, nil, "",
		},
		"another condition": {
			[]entry{{device: "gpu-0", status: `{conditions: [{type: Linked, status: "False", reason: Cable, message: "", lastTransitionTime: null}]}`}},
			`{mode: None}`,
			[]string{"condition Linked=False, reason Cable, is not in the template: claimStatus.mode has Ready=True, reason Prepared, or none"},
			"",
		},
		"what nothing explains": {
			[]entry{{device: "gpu-0", status: `{data: {token: "{{x", list: [a]}}`}, {device: "gpu-1", status: `{data: {token: yz, list: [a, b]}}`}},
			"{mode: None, data: {token: '{{ `{{` }}x', list: [a]}}",
			[]string{
				`claimStatus.data.list: "[a]" and "[a b]" differ, and nothing that templates can read explains it: the first is kept`,
				`claimStatus.data.token: "{{x" and "yz" differ, and nothing that templates can read explains it: the first is kept`,
			},
			"",
		},
		"one is not prepared yet": {
			[]entry{{device: "gpu-0", status: `{data: {a: b}}`}, {device: "gpu-1"}},
			`{mode: None, data: {a: b}}`,
			[]string{"1 of 2 devices have no entry in the status of their claims: they may not be prepared yet"},
			"",
		},
		"CDI devices": {
			[]entry{{device: "gpu-2", ids: []string{"k8s.gpu.example.com/gpu=common", "k8s.gpu.example.com/gpu=claim-uid-0-gpu-2"}, edits: []any{
				map[string]any{"id": "k8s.gpu.example.com/gpu=claim-uid-0-gpu-2", "containerEdits": []any{map[string]any{"env": []any{"GPU=gpu-2", "TIMES=1"}}}},
			}}},
			`{mode: None, cdiDeviceIDs: [k8s.gpu.example.com/gpu=common, "k8s.gpu.example.com/gpu={{ .Claim.uid }}-{{ .Device.name }}"]}`, nil,
			"- containerEdits:\n  - env:\n    - GPU={{ .Device.name }}\n    - TIMES=1\n  id: k8s.gpu.example.com/gpu={{ .Claim.uid }}-{{ .Device.name }}\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := learnClaimStatus(observed(t, test.entries))
			require.NoError(t, err)
			got, err := yaml.Marshal(l.status)
			require.NoError(t, err)
			require.YAMLEq(t, test.want, string(got))
			require.Equal(t, test.notes, l.notes)
			require.Equal(t, test.edits, l.edits)
		})
	}
}

// TestRecord prints templates, with comments.
func TestRecord(t *testing.T) {
	t.Parallel()
	all := observed(t, []entry{{device: "gpu-0", status: "{driver: gpu.example.com, pool: real, device: gpu-0, data: {model: LATEST-GPU-MODEL}}"}})
	p := all[0]
	p.claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{*p.result}}}
	p.claim.Status.Devices = []resourcev1.AllocatedDeviceStatus{*p.entry}
	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "slice"}, Spec: resourcev1.ResourceSliceSpec{
		Driver: "gpu.example.com", NodeName: &p.node.Name, Devices: []resourcev1.Device{*p.device},
		Pool: resourcev1.ResourcePool{Name: "real", ResourceSliceCount: 1},
	}}
	w := &world{node: p.node, slices: []*resourcev1.ResourceSlice{slice}, claims: []resourcev1.ResourceClaim{*p.claim}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(metrics)) }))
	defer server.Close()
	took, err := readLatencies(t.Context(), server.URL)
	require.NoError(t, err)
	nodes, err := (&command{node: "real", nodeSelector: "type=recorded,spare"}).nodeSelectorFor()
	require.NoError(t, err)
	text, notes, err := recordTemplates(t.Context(), w, nodes, took)
	require.NoError(t, err)
	require.Empty(t, notes)
	require.Equal(t, `# Pool real of driver gpu.example.com on node real.
# NodePrepareResources took 12ms (p50 of 4). With the general Stages for Pods, this annotation has a Pod wait for it, and 300ms for the kubelet:
#   pod-prepare.stage.kwok.x-k8s.io/delay: 312ms
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: ResourcePoolTemplate
metadata:
  name: gpu.example.com-0
spec:
  claimStatus:
    data:
      model: '{{ .Device.attributes.model.string }}'
    mode: None
  devices:
  - attributes:
      example.com/driverVersion:
        version: 1.0.0
      index: 0
      model: LATEST-GPU-MODEL
    name: gpu-0
  driver: gpu.example.com
  nodeSelector:
    nodeSelectorTerms:
    - matchExpressions:
      - key: type
        operator: In
        values:
        - recorded
      - key: spare
        operator: Exists
`, string(text))
}

const metrics = `# TYPE kwok_dra_plugin_call_duration_seconds histogram
kwok_dra_plugin_call_duration_seconds_bucket{code="OK",driver="gpu.example.com",method="NodePrepareResources",le="0.008"} 1
kwok_dra_plugin_call_duration_seconds_bucket{code="OK",driver="gpu.example.com",method="NodePrepareResources",le="0.016"} 3
kwok_dra_plugin_call_duration_seconds_bucket{code="OK",driver="gpu.example.com",method="NodePrepareResources",le="+Inf"} 4
kwok_dra_plugin_call_duration_seconds_sum{code="OK",driver="gpu.example.com",method="NodePrepareResources"} 9
kwok_dra_plugin_call_duration_seconds_count{code="OK",driver="gpu.example.com",method="NodePrepareResources"} 4
`

func TestMedian(t *testing.T) {
	t.Parallel()
	for want, h := range map[time.Duration]histogram{
		2 * time.Second:       {{2, 0}, {math.Inf(1), 4}},
		1 * time.Second:       {{2, 4}, {math.Inf(1), 4}},
		12 * time.Millisecond: {{0.008, 1}, {0.016, 3}, {math.Inf(1), 4}},
	} {
		require.Equal(t, want, h.medianLatency())
	}
	_, err := parseLatencies(strings.NewReader(`kwok_dra_plugin_call_duration_seconds_bucket{driver="d",le="x"} 1`))
	require.ErrorContains(t, err, `le="x"`)
}

func TestMetricsOfAnotherAddress(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	_, err := readLatencies(t.Context(), server.URL)
	require.ErrorContains(t, err, "404 Not Found: give the address of kwok-dra's /metrics")
}

func TestCDIDevices(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "a.yaml"), []byte("cdiVersion: 0.6.0\nkind: a.com/gpu\ncontainerEdits: {env: [A=1]}\ndevices: [{name: x, containerEdits: {deviceNodes: [{path: /dev/x}]}}]\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "notes.txt"), []byte("none"), 0o600))
	found, err := readCDIDevices(folder)
	require.NoError(t, err)
	require.Equal(t, map[string][]any{"a.com/gpu=x": {
		map[string]any{"env": []any{"A=1"}}, map[string]any{"deviceNodes": []any{map[string]any{"path": "/dev/x"}}},
	}}, found)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "b.json"), []byte("{"), 0o600))
	_, err = readCDIDevices(folder)
	require.ErrorContains(t, err, "b.json")
}

func TestFlags(t *testing.T) {
	t.Parallel()
	for want, arguments := range map[string][]string{
		"--node is missing: give the node with the real drivers":                                                       nil,
		"--cdi is for what is in --plugins-dir: give it as well":                                                       {"--node", "real", "--cdi", "/var/run/cdi"},
		`parse --node-selector "a>1": "gt" isn't supported in label selectors: use =, !=, in, notin, or a label alone`: {"--node", "real", "--node-selector", "a>1"},
		`unexpected argument "real": record takes none`:                                                                {"real"},
	} {
		command := New(cli.Streams{}, &cluster.Flags{})
		command.SilenceErrors, command.SilenceUsage = true, true
		command.SetArgs(arguments)
		require.EqualError(t, command.ExecuteContext(t.Context()), want)
	}
}
