package templatenode_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/pkg/templatenode"
)

const templates = `
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: ResourcePoolTemplate
metadata: {name: gpus}
spec:
  driver: gpu.example.com
  nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: gpus, operator: Exists}]}]}
  devices: [{name: gpu, count: 2, attributes: {rack: "{{ .Node.metadata.labels.rack }}"}}]
---
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: ResourcePoolTemplate
metadata: {name: nics}
spec:
  driver: nic.example.com
  devices: [{name: nic, allowMultipleAllocations: true}]
---
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: ResourcePoolTemplate
metadata: {name: fabric}
spec:
  driver: fabric.example.com
  sharedWith: {allNodes: true}
  devices: [{name: port}]
---
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: ResourcePoolTemplate
metadata: {name: chart}
spec:
  driver: "{{ .DriverPod.env.DRIVER }}"
  driverPod: {selector: {matchLabels: {app: driver}}}
  devices: [{name: tpu}]
`

// server is an API server that keeps what keep leaves of a slice. The fake one knows no
// dry runs.
func server(keep func(*resourcev1.ResourceSlice)) kubernetes.Interface {
	client := fake.NewClientset()
	client.PrependReactor("create", "resourceslices", func(action clienttesting.Action) (bool, runtime.Object, error) {
		slice := action.(clienttesting.CreateAction).GetObject().(*resourcev1.ResourceSlice).DeepCopy()
		keep(slice)
		return true, slice, nil
	})
	return client
}

func keepAll(*resourcev1.ResourceSlice) {}

func dropSharing(slice *resourcev1.ResourceSlice) {
	for i := range slice.Spec.Devices {
		slice.Spec.Devices[i].AllowMultipleAllocations = nil
	}
}

func read(t *testing.T, documents string) ([]*devices.Template, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "templates.yaml")
	require.NoError(t, os.WriteFile(path, []byte(documents), 0o600))
	return templatenode.ReadTemplates(t.Context(), path)
}

func newRenderer(t *testing.T, keep func(*resourcev1.ResourceSlice)) *templatenode.Renderer {
	t.Helper()
	made, err := read(t, templates)
	require.NoError(t, err)
	return templatenode.New(server(keep), made)
}

func newNode(labels map[string]string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "next", Labels: labels, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}}}
}

func driverPod(namespace, driver string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "driver", Labels: map[string]string{"app": "driver"}}}
	pod.Spec.Containers = []corev1.Container{{Name: "plugin", Env: []corev1.EnvVar{{Name: "DRIVER", Value: driver}}}}
	return pod
}

func TestRender(t *testing.T) {
	t.Parallel()
	renderer := newRenderer(t, keepAll)
	for name, test := range map[string]struct {
		labels map[string]string
		pods   []*corev1.Pod
		want   []string
		err    string
	}{
		"what the labels select": {labels: map[string]string{"gpus": "", "rack": "r1"}, want: []string{"gpu.example.com/next gpu-0", "gpu.example.com/next gpu-1", "nic.example.com/next nic"}},
		"other labels":           {want: []string{"nic.example.com/next nic"}},
		"drivers fail alone":     {labels: map[string]string{"gpus": ""}, want: []string{"nic.example.com/next nic"}, err: "render driver gpu.example.com for node next"},
		"driver Pods": {
			pods: []*corev1.Pod{driverPod("a", "tpu-a.example.com"), driverPod("b", "tpu-b.example.com")},
			want: []string{"nic.example.com/next nic", "tpu-a.example.com/next tpu", "tpu-b.example.com/next tpu"},
		},
		"a driver Pod that does not say": {pods: []*corev1.Pod{driverPod("a", "No Name")}, want: []string{"nic.example.com/next nic"}, err: "template chart for pod a/driver"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rendered, err := renderer.Render(t.Context(), newNode(test.labels), test.pods...)
			if test.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, test.err)
			}
			var got []string
			for _, slice := range rendered.Slices {
				require.Equal(t, "next", *slice.Spec.NodeName)
				for _, device := range slice.Spec.Devices {
					got = append(got, slice.Spec.Driver+"/"+slice.Spec.Pool.Name+" "+device.Name)
				}
			}
			require.Equal(t, test.want, got)
			require.Empty(t, rendered.Dropped)
		})
	}
}

// TestDropped: what the API server does not keep is not promised, and told.
func TestDropped(t *testing.T) {
	t.Parallel()
	rendered, err := newRenderer(t, dropSharing).Render(t.Context(), newNode(nil))
	require.NoError(t, err)
	require.Len(t, rendered.Dropped, 1)
	require.Equal(t, "allowMultipleAllocations", rendered.Dropped[0].Field.Name)
	require.Nil(t, rendered.Slices[0].Spec.Devices[0].AllowMultipleAllocations)
}

func TestReadTemplates(t *testing.T) {
	t.Parallel()
	_, err := read(t, "apiVersion: dra.kwok.x-k8s.io/v1alpha1\nkind: ResourcePoolTemplate\nmetadata: {name: a}\nspec: {driver: a.example.com}\n")
	require.ErrorContains(t, err, "spec.devices")
}

// TestReadTemplatesRefuses: a template is refused for a mistake in what only an extension uses, too.
func TestReadTemplatesRefuses(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "templates.yaml")
	first, _, _ := strings.Cut(templates, "---")
	document := first + "  containerEdits: {perDevice: {env: ['A={{ .Device.nme }}']}}\n"
	require.NoError(t, os.WriteFile(path, []byte(document), 0o600))
	_, err := templatenode.ReadTemplates(t.Context(), path)
	require.ErrorContains(t, err, "spec.containerEdits.perDevice.env[0]")
	require.ErrorContains(t, err, "there is no .Device.nme here")
}
