package schedule

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cluster"
	"github.com/kwok-dra/kwok-dra/internal/dractl/input"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/simulator"
)

const examples = "../testdata/examples/"

// run runs the command with files of the examples, and what is on standard input.
func run(t *testing.T, in string, arguments ...string) (string, string, error) {
	t.Helper()
	return runIn(t, &cluster.Flags{Namespace: "default"}, in, arguments...)
}

func runIn(t *testing.T, reach *cluster.Flags, in string, arguments ...string) (string, string, error) {
	t.Helper()
	var out, errOut bytes.Buffer
	command := New(cli.Streams{In: strings.NewReader(in), Out: &out, ErrOut: &errOut}, reach)
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetArgs(arguments)
	err := command.ExecuteContext(t.Context())
	return out.String(), errOut.String(), err
}

func files(names ...string) []string {
	var arguments []string
	for _, name := range names {
		arguments = append(arguments, "-f", examples+name)
	}
	return arguments
}

func TestCommandTable(t *testing.T) {
	t.Parallel()
	out, errOut, err := run(t, "", append(files("templates.yaml", "classes.yaml", "pods.yaml"), "--nodes", "1")...)
	require.NoError(t, err)
	require.Empty(t, errOut)
	require.Equal(t, `NAMESPACE   POD     NODE             DEVICES
default     train   example-h100-0   gpus=gpu.nvidia.com/example-h100-0/gpu-0,gpus=gpu.nvidia.com/example-h100-0/gpu-1,gpus=gpu.nvidia.com/example-h100-0/gpu-2,gpus=gpu.nvidia.com/example-h100-0/gpu-3
default     serve   example-mig-0    gpu/part=gpu.nvidia.com/example-mig-0/gpu-0-mig-0
`, out)
}

// TestCommandNegative has exit code 1 for a Pod that does not fit, and lists what
// was not considered.
func TestCommandNegative(t *testing.T) {
	t.Parallel()
	in := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"
	out, errOut, err := run(t, in, append(files("templates.yaml", "classes.yaml", "pods.yaml"), "-f", "-", "--nodes", "example-mig=4")...)
	require.ErrorIs(t, err, cli.ErrNegative)
	require.Equal(t, "not considered: 1 ConfigMap\n", errOut)
	require.Contains(t, out, "Pod default/train fits on no node:\n  there is no device of class example-gpu that matches `device.attributes['gpu.nvidia.com'].productName.startsWith('NVIDIA H100')`, among 8 of the class on 4 nodes; request gpus wants 4 on one node")
}

// TestCommandObjects writes the devices into claims and Pods.
func TestCommandObjects(t *testing.T) {
	t.Parallel()
	out, _, err := run(t, "", append(files("templates.yaml", "classes.yaml", "nodes.yaml", "pods.yaml"), "-o", "yaml")...)
	require.NoError(t, err)
	documents := strings.Split(out, "---\n")
	require.Len(t, documents, 4)
	var pod corev1.Pod
	require.NoError(t, yaml.UnmarshalStrict([]byte(documents[0]), &pod))
	require.Equal(t, "h100-0", pod.Spec.NodeName)
	require.Equal(t, "Pod", pod.Kind)
	require.Equal(t, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, pod.Status.Conditions[0])
	require.Equal(t, "train-gpus", *pod.Status.ResourceClaimStatuses[0].ResourceClaimName)
	var claim resourcev1.ResourceClaim
	require.NoError(t, yaml.UnmarshalStrict([]byte(documents[1]), &claim))
	require.Equal(t, "train-gpus", claim.Name)
	require.Len(t, claim.Status.Allocation.Devices.Results, 4)
	require.Equal(t, "train", claim.Status.ReservedFor[0].Name)
}

func TestCommandHowMany(t *testing.T) {
	t.Parallel()
	out, _, err := run(t, "", append(files("templates.yaml", "classes.yaml", "pods.yaml"), "--nodes", "2", "--how-many", "-o", "json")...)
	require.NoError(t, err)
	var counts []more
	require.NoError(t, yaml.Unmarshal([]byte(out), &counts))
	require.Equal(t, 3, counts[0].More)
	require.Equal(t, 8*2-1+8*2-4, counts[1].More, "partitions, and whole GPUs of the other nodes")
}

func TestCommandSlices(t *testing.T) {
	t.Parallel()
	out, _, err := run(t, "", append(files("classes.yaml", "pods.yaml"), "--slices", examples+"slices.yaml")...)
	require.ErrorIs(t, err, cli.ErrNegative)
	require.Contains(t, out, "gpu/whole=gpu.nvidia.com/h100-9/gpu-0")
}

// TestSlicesWithoutNodes takes the nodes from the slices.
func TestSlicesWithoutNodes(t *testing.T) {
	t.Parallel()
	in := &input.Input{}
	for _, node := range []string{"node-0000", "node-0001"} {
		in.Slices = append(in.Slices, &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{NodeName: &node}})
	}
	in.NameNodes()
	require.Len(t, in.Nodes, 2)
	require.Equal(t, "node-0001", in.Nodes[1].Name)
}

// TestCommandRefuses says what is wrong and what would be right.
func TestCommandRefuses(t *testing.T) {
	t.Parallel()
	old := filepath.Join(t.TempDir(), "old.yaml")
	require.NoError(t, os.WriteFile(old, []byte("apiVersion: resource.k8s.io/v1alpha3\nkind: DeviceClass\nmetadata: {name: c}\n"), 0o600))
	for want, arguments := range map[string][]string{
		"there are no Pods that wait for a node in the files: give some with -f":                      files("classes.yaml"),
		"there are no nodes: give --nodes, Nodes with -f, --slices or --from-cluster":                 files("classes.yaml", "pods.yaml"),
		`there is no ResourcePoolTemplate "x" in the files: give its file with -f`:                    append(files("templates.yaml"), "--nodes", "x=1"),
		"must be a number of nodes to make, or TEMPLATE=NUMBER":                                       {"--nodes", "x"},
		`DeviceClass "c": apiVersion: resource.k8s.io/v1alpha3 is not read: write it as resource.k8s`: {"-f", old},
		"exclude each other: give one of them":                                                        {"--slices", "x", "--from-cluster"},
	} {
		_, _, err := run(t, "", arguments...)
		require.ErrorContains(t, err, want)
		require.NotErrorIs(t, err, cli.ErrNegative)
	}
}

// TestOver has files that say something else than the cluster.
func TestOver(t *testing.T) {
	t.Parallel()
	live := &input.Input{World: simulator.World{
		Nodes:   []*corev1.Node{{}},
		Classes: []*resourcev1.DeviceClass{{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}, Spec: resourcev1.DeviceClassSpec{ExtendedResourceName: new("example.com/gpu")}}},
	}}
	live.Waiting = []*corev1.Pod{{}}
	changed := live.Classes[0].DeepCopy()
	changed.Spec.ExtendedResourceName = nil
	in := &input.Input{World: simulator.World{Classes: []*resourcev1.DeviceClass{changed}}}
	in.AddCluster(live)
	require.Equal(t, []*resourcev1.DeviceClass{changed}, in.Classes)
	require.Len(t, in.Nodes, 1)
	require.Equal(t, live.Waiting, in.Waiting, "those that wait in the cluster")
}

// TestGivenTwice: which of two objects counts would be chance.
func TestGivenTwice(t *testing.T) {
	t.Parallel()
	for _, again := range []string{"pods.yaml", "classes.yaml", "templates.yaml"} {
		_, _, err := run(t, "", append(files("templates.yaml", "classes.yaml", "pods.yaml", again), "--nodes", "1")...)
		require.ErrorContains(t, err, "also in "+examples+again, again)
	}
	const foreign = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"
	_, told, err := run(t, foreign+"---\n"+foreign, append(files("templates.yaml", "classes.yaml", "pods.yaml"), "--nodes", "1", "-f", "-")...)
	require.NoError(t, err)
	require.Equal(t, "not considered: 2 ConfigMap\n", told)
}

// TestSlicesOfOlderVersions: most public dumps are of v1beta1.
func TestSlicesOfOlderVersions(t *testing.T) {
	t.Parallel()
	in := `
{"apiVersion": "v1", "kind": "List", "items": [
 {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "here"}},
 {"apiVersion": "resource.k8s.io/v1beta1", "kind": "ResourceSlice", "metadata": {"name": "s1"}, "spec": {"driver": "gpu.nvidia.com", "nodeName": "here",
  "pool": {"name": "here", "generation": 1, "resourceSliceCount": 1},
  "devices": [{"name": "gpu-0", "basic": {"attributes": {"type": {"string": "gpu"}, "gpu.nvidia.com/type": {"string": "mig"}}}}]}},
 {"apiVersion": "resource.k8s.io/v1beta2", "kind": "ResourceSlice", "metadata": {"name": "s2"}, "spec": {"driver": "gpu.nvidia.com", "nodeName": "gone",
  "pool": {"name": "gone", "generation": 1, "resourceSliceCount": 1}, "devices": [{"name": "gpu-0", "flavour": 1}]}},
 {"apiVersion": "resource.k8s.io/v1beta1", "kind": "DeviceClass", "metadata": {"name": "any"}, "spec": {"selectors": [{"cel": {"expression": "true"}}]}},
 {"apiVersion": "resource.k8s.io/v1beta1", "kind": "ResourceClaimTemplate", "metadata": {"name": "one"},
  "spec": {"spec": {"devices": {"requests": [{"name": "r", "deviceClassName": "any"}]}}}},
 {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"resourceClaims": [{"name": "c", "resourceClaimTemplateName": "one"}], "containers": []}}
]}`
	out, told, err := run(t, in, "--slices", "-", "--how-many")
	require.NoError(t, err)
	require.Contains(t, out, "p     1      1\n", "one device, and none on a node that is gone")
	require.Equal(t, `not considered: <stdin>:1: ResourceSlice "s2": fields not known: spec.devices[].flavour
not considered: ResourceSlice "s2": there is no Node gone
type of 1 device of driver gpu.nvidia.com: also there as gpu.nvidia.com/type, and CEL takes both for one: which value it sees is chance; leave one out
`, told)
}

// TestNothingWaits: programs get an answer, too, if no Pod waits.
func TestNothingWaits(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, _ *http.Request) {
		response.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(response, `{"kind": "List", "apiVersion": "v1"}`)
	}))
	defer server.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	reached := `{kind: Config, clusters: [{name: c, cluster: {server: "` + server.URL + `"}}], contexts: [{name: c, context: {cluster: c}}], current-context: c}`
	require.NoError(t, os.WriteFile(kubeconfig, []byte(reached), 0o600))
	for _, test := range []struct {
		arguments []string
		want      string
	}{
		{nil, ""},
		{[]string{"--how-many"}, ""},
		{[]string{"-o", "json"}, `{"apiVersion": "v1", "kind": "List", "items": []}`},
		{[]string{"-o", "json", "--how-many"}, `[]`},
		{[]string{"-o", "yaml", "--how-many"}, "[]\n"},
	} {
		out, told, err := runIn(t, &cluster.Flags{Kubeconfig: kubeconfig}, "", append(test.arguments, "--from-cluster")...)
		require.NoError(t, err)
		require.Equal(t, "no Pod waits for a node\n", told)
		if slices.Contains(test.arguments, "json") {
			require.JSONEq(t, test.want, out)
			continue
		}
		require.Equal(t, test.want, out, test.arguments)
	}
}

// TestInterrupted: what a search has found that was interrupted is not printed.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	c := &command{streams: cli.Streams{Out: &out, ErrOut: &out}, output: output.Flag{Format: output.JSON}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	pod := &corev1.Pod{}
	err := c.printPlacements(ctx, simulator.NewScheduler(&simulator.World{}), []*simulator.Placement{{Pod: pod}})
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, out.String())
}
