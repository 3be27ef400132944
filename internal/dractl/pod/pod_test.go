package pod

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cluster"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/extensions/containerview"
	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/root"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

func TestFind(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*corev1.Pod, *corev1.Node){
		"": func(*corev1.Pod, *corev1.Node) {},
		`there is no Pod "p" in namespace default: list them with kubectl get pods, or give another namespace with -n`:                                                func(p *corev1.Pod, _ *corev1.Node) { p.Name = "another" },
		`there is no Pod "p" in namespace default: did you mean p1?`:                                                                                                  func(p *corev1.Pod, _ *corev1.Node) { p.Name = "p1" },
		"pod default/p: uses no ResourceClaim, so no driver injects anything: name one in spec.resourceClaims, or give the Pod an extended resource of a DeviceClass": func(p *corev1.Pod, _ *corev1.Node) { p.Spec.ResourceClaims = nil },
		"pod default/p: is not bound to a node yet: kwok-dractl why says why":                                                                                         func(p *corev1.Pod, _ *corev1.Node) { p.Spec.NodeName = "" },
		`get node n of Pod default/p: nodes "n" not found`:                                                                                                            func(_ *corev1.Pod, n *corev1.Node) { n.Name = "m" },
		"pod default/p: is on node n, which is not fake, by annotations kwok.x-k8s.io/node=fake: ask its containers, or choose the fake nodes with --manage-all-nodes or another --manage option": func(_ *corev1.Pod, n *corev1.Node) {
			n.Annotations = nil
		},
		"pod default/p: has ended, and its claims are unprepared": func(p *corev1.Pod, _ *corev1.Node) {
			p.Status = corev1.PodStatus{Phase: corev1.PodSucceeded}
		},
		"pod default/p: its claims are not prepared, so no container would start: kwok-dractl why says why": func(p *corev1.Pod, _ *corev1.Node) {
			p.Status.Conditions[0].Status = corev1.ConditionFalse
		},
	} {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"},
			Spec:       corev1.PodSpec{NodeName: "n", ResourceClaims: []corev1.PodResourceClaim{{Name: "c", ResourceClaimName: new("c")}}},
			Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue}}},
		}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}}}
		change(pod, node)
		c := &command{}
		require.NoError(t, c.managed.Complete())
		found, on, err := c.findPreparedPod(t.Context(), fake.NewClientset(pod, node), "default", "p")
		if want != "" {
			require.EqualError(t, err, want)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, []string{"p", "n"}, []string{found.Name, on.Name})
	}
}

func TestPrint(t *testing.T) {
	t.Parallel()
	shown := &view{Containers: []containerview.Container{
		{Name: "setup", Init: true},
		{
			Name: "main", Env: []string{"A=1", "EMPTY=", "EQUAL=a=b"},
			Mounts:        []v1alpha1.Mount{{ContainerPath: "/c", HostPath: "/h", Options: []string{"ro", "bind"}}},
			MetadataFiles: []containerview.MetadataFile{{Path: "/m", Content: "{\n  \"driver\": \"\x1b[d\"\n}\n"}},
			DeviceNodes:   []v1alpha1.DeviceNode{{Path: "/dev/a", Type: "c", Major: new(intstr.FromInt32(195))}},
			Devices: []containerview.Device{{
				Driver: "d", Pool: "n", Device: "gpu-0", Claim: "c", Request: "r/x", AdminAccess: true, ShareID: "s",
				ConsumedCapacity: map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse("1Gi"), "cores": resource.MustParse("2")},
			}},
		},
	}}
	for format, want := range map[output.Format]string{
		output.Table: `init container setup

container main

VARIABLE   VALUE
A          1
EMPTY
EQUAL      a=b

MOUNT   OF   OPTIONS
/c      /h   ro,bind

DEVICE NODE   OF       TYPE   MAJOR   MINOR    PERMISSIONS
/dev/a        /dev/a   c      195     <none>   <none>

DEVICE   DRIVER   CLAIM   REQUEST
gpu-0    d        c       r/x

METADATA /m
{
  "driver": "[d"
}
`,
		output.Wide: `init container setup

container main

VARIABLE   VALUE
A          1
EMPTY
EQUAL      a=b

MOUNT   OF   OPTIONS   TYPE
/c      /h   ro,bind   <none>

DEVICE NODE   OF       TYPE   MAJOR   MINOR    PERMISSIONS
/dev/a        /dev/a   c      195     <none>   <none>

DEVICE   DRIVER   POOL   CLAIM   REQUEST   ACCESS   SHARE   CONSUMES
gpu-0    d        n      c       r/x       admin    s       cores=2,memory=1Gi

METADATA /m
{
  "driver": "[d"
}
`,
	} {
		var out bytes.Buffer
		require.NoError(t, shown.printView(&out, format))
		require.Equal(t, want, out.String())
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	made := New(cli.Streams{}, &cluster.Flags{})
	made.SetArgs([]string{"p", "--cdi", "/cdi"})
	made.SilenceErrors, made.SilenceUsage = true, true
	require.EqualError(t, made.ExecuteContext(t.Context()), "--cdi is for what is in --plugins-dir: give it as well")
}

// TestReadMetadata: a file of a real driver is read in the folder of its node, by the name that the host
// has for it, and nowhere else.
func TestReadMetadata(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "plugins", "d"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "plugins", "d", "metadata.json"), []byte("{}\n"), 0o600))
	require.NoError(t, os.Symlink("/etc/hostname", filepath.Join(folder, "plugins", "d", "link.json")))
	d := &drivers{folder: &root.Root{Path: folder}}
	content, err := d.readMetadata("/var/lib/kubelet/plugins/d/metadata.json")
	require.NoError(t, err)
	require.Equal(t, "{}\n", content)
	_, err = d.readMetadata("/var/lib/kubelet/plugins/d/link.json")
	require.ErrorContains(t, err, "it is a symbolic link out of")
	_, err = d.readMetadata("/etc/hostname")
	require.ErrorIs(t, err, fs.ErrNotExist)
}
