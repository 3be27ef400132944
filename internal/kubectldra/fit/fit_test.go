package fit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/internal/worldtest"
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

// judgeFile judges a file beside a Pod of low priority, which has one of two GPUs, and other objects.
func judgeFile(t *testing.T, content string, objects ...any) *worldtest.Answer {
	t.Helper()
	return judgeIn(worldtest.New(t, append(objects, worldtest.TwoGPUs(), worldtest.Holder(corev1.PodRunning))...), content)
}

func judgeIn(w *worldtest.World, content string, arguments ...string) *worldtest.Answer {
	path := filepath.Join(w.TempDir(), "file.yaml")
	require.NoError(w, os.WriteFile(path, []byte(content), 0o600))
	return w.Run(New, append(arguments, "-f", path)...)
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
			"Pod ml/train fits on node gpu-0\n  claim gpus, request gpus: gpu.example.com/gpu-0/gpu-1\n",
		},
		"a class of the file": {
			file("own", "1", pod, "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: own}\n"), true,
			"Pod ml/train fits on node gpu-0\n  claim gpus, request gpus: gpu.example.com/gpu-0/gpu-1\n",
		},
		"a lower priority would have to go": {
			file("gpu", "2", pod), false,
			"Pod ml/train does not fit: only 1 of 2 devices of class gpu on 1 node can be had: 1 allocated (ml/holder 1); request gpus wants 2 on one node; nearest: node gpu-0 lacks 1\n" +
				"  it would fit on node gpu-0 without Pods of lower priority: ml/holder (priority -5)\n",
		},
		"nothing would help": {
			file("gpu", "3", pod), false,
			"Pod ml/train does not fit: no node has as many devices: node gpu-0 has the most, 2, of 2 devices of class gpu on 1 node; request gpus wants 3 on one node\n",
		},
		"no template": {
			pod, false,
			"Pod ml/train does not fit: resourceclaimtemplate \"gpus\" not found: give its file with -f\n",
		},
		"a rule that is not considered": {
			file("gpu", "1", strings.Replace(pod, "spec:\n", "spec:\n  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]\n", 1)), true,
			"Pod ml/train fits on node gpu-0\n  claim gpus, request gpus: gpu.example.com/gpu-0/gpu-1\n  not considered: volumes\n",
		},
		"not all of a Deployment": {
			file("gpu", "1", deployment), false, `1 of 3 Pods fit.

Pod ml/serve-1 does not fit: all 2 devices of class gpu on 1 node are allocated (ml/holder 1, ml/serve-0 1); request gpus wants 1; nearest: node gpu-0 lacks 1
  it would fit on node gpu-0 without Pods of lower priority: ml/holder (priority -5)
and 1 more, for the same reasons

NAMESPACE   POD       NODE    DEVICES
ml          serve-0   gpu-0   gpus=gpu.example.com/gpu-0/gpu-1
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := judgeFile(t, test.content)
			require.Equal(t, test.want, a.Out)
			if test.fits {
				require.NoError(t, a.Err)
				return
			}
			require.ErrorIs(t, a.Err, cli.ErrNegative)
		})
	}
}

// TestPriority is that of the PriorityClass.
func TestPriority(t *testing.T) {
	t.Parallel()
	const class = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: low}\nvalue: -10\n"
	content := file("gpu", "2", strings.Replace(pod, "spec:\n", "spec:\n  priorityClassName: low\n", 1))
	a := judgeFile(t, content, class)
	require.ErrorIs(t, a.Err, cli.ErrNegative)
	require.NotContains(t, a.Out, "without Pods of lower priority", "the holder has a higher one")
	require.EqualError(t, judgeFile(t, content).Err, `read priorityClassName of Pod train: there is no PriorityClass "low", so the API server refuses the Pod`)
}

// TestAdminAccess is for the namespaces that permit it.
func TestAdminAccess(t *testing.T) {
	t.Parallel()
	content := strings.Replace(file("gpu", "1", pod), "count: 1", "count: 1, adminAccess: true", 1)
	a := judgeFile(t, content)
	require.ErrorIs(t, a.Err, cli.ErrNegative)
	require.Contains(t, a.Out, "request gpus of claim gpus wants admin access, which namespace ml does not permit")
	const namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: ml, labels: {resource.kubernetes.io/admin-access: \"true\"}}\n"
	require.NoError(t, judgeFile(t, content, namespace).Err)
}

// TestRights: whether a Pod fits cannot be said of a cluster that is not seen.
func TestRights(t *testing.T) {
	t.Parallel()
	w := worldtest.New(t, worldtest.TwoGPUs())
	w.Forbid("resourceslices")
	require.ErrorContains(t, judgeIn(w, file("gpu", "1", pod)).Err, "without the right to list resourceslices in all namespaces: ask for the ClusterRole dra-viewer")
	require.ErrorContains(t, judgeIn(w, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n").Err, "they have no Pod that waits for a node")
}

// TestObjects are for programs.
func TestObjects(t *testing.T) {
	t.Parallel()
	a := judgeIn(worldtest.New(t, worldtest.TwoGPUs(), worldtest.Holder(corev1.PodRunning)), file("gpu", "2", pod), "-o", "jsonpath={.items[*].fits} {.items[*].evict}")
	require.ErrorIs(t, a.Err, cli.ErrNegative)
	require.Equal(t, `false {"node":"gpu-0","pods":[{"name":"holder","namespace":"ml","priority":-5}]}`, a.Out)
}
