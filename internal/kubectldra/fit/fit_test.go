package fit

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kwok-dra/kwok-dra/internal/kubectldra/internal/worldtest"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/printing"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/reading"
)

const template = `
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpus}
spec: {spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: CLASS, count: COUNT}}]}}}
---
`

const pod = `
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  containers: [{name: main, image: i}]
  resourceClaims: [{name: gpus, resourceClaimTemplateName: gpus}]
---
`

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: serve}
spec:
  replicas: 3
  selector: {}
  template: {spec: {containers: [{name: main, image: i}], resourceClaims: [{name: gpus, resourceClaimTemplateName: gpus}]}}
---
`

// file is a file with some of these.
func file(class, count string, objects ...string) string {
	return strings.NewReplacer("CLASS", class, "COUNT", count).Replace(template) + strings.Join(objects, "")
}

// judgeFile judges a file in the namespace team, and returns what is printed, and whether all fit.
func judgeFile(t *testing.T, client *fake.Clientset, content string, arguments ...string) (text string, fits bool, err error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.yaml")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	var out strings.Builder
	c := &command{streams: genericiooptions.IOStreams{Out: &out, ErrOut: &out}, print: printing.NewFlags()}
	flags := &cobra.Command{Use: "fit"}
	c.print.AddTo(flags)
	require.NoError(t, flags.ParseFlags(arguments))
	c.files.Paths = []string{path}
	in, err := c.readFiles("team")
	if err != nil {
		return "", false, err
	}
	verdicts, err := judge(t.Context(), reading.NewReaderOf(client), in)
	if err != nil {
		return "", false, err
	}
	fits = true
	for _, verdict := range verdicts {
		fits = fits && verdict.Fits
	}
	return out.String() + show(t, c, &out, verdicts), fits, nil
}

func show(t *testing.T, c *command, out *strings.Builder, verdicts []*Verdict) string {
	t.Helper()
	out.Reset()
	require.NoError(t, c.printVerdicts(verdicts))
	return out.String()
}

// TestFit judges files beside a Pod of low priority, which has one of two GPUs.
func TestFit(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		content string
		fits    bool
		want    string
	}{
		"fits": {
			file("gpu", "1", pod), true,
			"Pod team/train fits on node gpu-0\n  claim gpus, request gpus: gpu.example.com/gpu-0/gpu-1\n",
		},
		"a class of the file": {
			file("own", "1", pod, "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: own}\n"), true,
			"Pod team/train fits on node gpu-0\n  claim gpus, request gpus: gpu.example.com/gpu-0/gpu-1\n",
		},
		"a lower priority would have to go": {
			file("gpu", "2", pod), false,
			"Pod team/train does not fit: only 1 of 2 devices of class gpu on 1 node can be had: 1 allocated (team/holder 1); request gpus wants 2 on one node; nearest: node gpu-0 lacks 1\n" +
				"  it would fit on node gpu-0 without Pods of lower priority: team/holder (priority -5)\n",
		},
		"nothing would help": {
			file("gpu", "3", pod), false,
			"Pod team/train does not fit: no node has as many devices: node gpu-0 has the most, 2, of 2 devices of class gpu on 1 node; request gpus wants 3 on one node\n",
		},
		"no template": {
			pod, false,
			"Pod team/train does not fit: resourceclaimtemplate \"gpus\" not found: give its file with -f\n",
		},
		"a rule that is not considered": {
			file("gpu", "1", strings.Replace(pod, "spec:\n", "spec:\n  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]\n", 1)), true,
			"Pod team/train fits on node gpu-0\n  claim gpus, request gpus: gpu.example.com/gpu-0/gpu-1\n  not considered: volumes\n",
		},
		"not all of a Deployment": {
			file("gpu", "1", deployment), false, `1 of 3 Pods fit.

Pod team/serve-1 does not fit: all 2 devices of class gpu on 1 node are allocated (team/holder 1, team/serve-0 1); request gpus wants 1; nearest: node gpu-0 lacks 1
  it would fit on node gpu-0 without Pods of lower priority: team/holder (priority -5)
and 1 more, for the same reasons

NAMESPACE   POD       NODE    DEVICES
team        serve-0   gpu-0   gpus=gpu.example.com/gpu-0/gpu-1
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := worldtest.Client(t, worldtest.Node, worldtest.Holder)
			text, fits, err := judgeFile(t, client, test.content)
			require.NoError(t, err)
			require.Equal(t, test.want, text)
			require.Equal(t, test.fits, fits)
			for _, action := range client.Actions() {
				require.Contains(t, []string{"get", "list"}, action.GetVerb())
			}
		})
	}
}

// TestPriority is that of the PriorityClass.
func TestPriority(t *testing.T) {
	t.Parallel()
	const class = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: low}\nvalue: -10\n"
	content := file("gpu", "2", strings.Replace(pod, "spec:\n", "spec:\n  priorityClassName: low\n", 1))
	text, fits, err := judgeFile(t, worldtest.Client(t, worldtest.Node, worldtest.Holder, class), content)
	require.NoError(t, err)
	require.False(t, fits)
	require.NotContains(t, text, "without Pods of lower priority", "the holder has a higher one")
	_, _, err = judgeFile(t, worldtest.Client(t, worldtest.Node), content)
	require.EqualError(t, err, `read priorityClassName of Pod train: there is no PriorityClass "low", so the API server refuses the Pod`)
}

// TestAdminAccess is for the namespaces that permit it.
func TestAdminAccess(t *testing.T) {
	t.Parallel()
	content := strings.Replace(file("gpu", "1", pod), "count: 1", "count: 1, adminAccess: true", 1)
	text, fits, err := judgeFile(t, worldtest.Client(t, worldtest.Node, worldtest.Holder), content)
	require.NoError(t, err)
	require.False(t, fits)
	require.Contains(t, text, "request gpus of claim gpus wants admin access, which namespace team does not permit")
	const namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: team, labels: {resource.kubernetes.io/admin-access: \"true\"}}\n"
	text, fits, err = judgeFile(t, worldtest.Client(t, worldtest.Node, worldtest.Holder, namespace), content)
	require.NoError(t, err)
	require.True(t, fits, text)
}

// TestRights: whether a Pod fits cannot be said of a cluster that is not seen.
func TestRights(t *testing.T) {
	t.Parallel()
	client := worldtest.Client(t, worldtest.Node)
	worldtest.Forbid(client, "resourceslices")
	_, _, err := judgeFile(t, client, file("gpu", "1", pod))
	require.ErrorContains(t, err, "without the right to list resourceslices in all namespaces: ask for the ClusterRole dra-viewer")
	_, _, err = judgeFile(t, client, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n")
	require.ErrorContains(t, err, "they have no Pod that waits for a node")
}

// TestObjects are for programs.
func TestObjects(t *testing.T) {
	t.Parallel()
	text, _, err := judgeFile(t, worldtest.Client(t, worldtest.Node, worldtest.Holder), file("gpu", "2", pod), "-o", "json")
	require.NoError(t, err)
	var list struct{ Items []Verdict }
	require.NoError(t, json.Unmarshal([]byte(text), &list))
	require.Len(t, list.Items, 1)
	require.False(t, list.Items[0].Fits)
	require.Equal(t, &Evict{"gpu-0", []Victim{{"team", "holder", -5}}}, list.Items[0].Evict)
}
