package check

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/internal/worldtest"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/usage"
	"github.com/kwok-dra/kwok-dra/internal/testing/tabletest"
)

// healthy is a cluster in which nothing is wrong: two nodes with four devices each, of which a Pod has one.
func healthy() *World {
	w := &World{
		Objects: usage.Objects{
			Slices: []*resourcev1.ResourceSlice{worldtest.Slice("a", "gpu-0", "gpu-1", "gpu-2", "gpu-3"), worldtest.Slice("b", "gpu-0", "gpu-1", "gpu-2", "gpu-3")},
			Claims: []*resourcev1.ResourceClaim{worldtest.Claim("train", "a", []string{"gpu-0"}, "train")},
			Pods:   []*corev1.Pod{worldtest.Pod("train", "a", "train", worldtest.Prepared)},
		},
		Now: worldtest.Now.Time, Writers: map[string][]string{"a-gpus": {"gpu-plugin"}, "b-gpus": {"gpu-plugin"}},
		Classes: []*resourcev1.DeviceClass{worldtest.Class("gpu", worldtest.OfDriver), worldtest.Class("all")},
		Nodes:   []*corev1.Node{worldtest.Node("a", true), worldtest.Node("b", true)},
		Unseen:  map[string]bool{},
	}
	w.Claims[0].ResourceVersion = "7"
	for _, slice := range w.Slices {
		for i := range slice.Spec.Devices {
			slice.Spec.Devices[i].Attributes["index"] = resourcev1.DeviceAttribute{IntValue: new(int64(i))}
			slice.Spec.Devices[i].Attributes["rack"] = resourcev1.DeviceAttribute{StringValue: new("rack-of-" + *slice.Spec.NodeName)}
		}
	}
	return w
}

// sick are clusters in each of which one thing is wrong, by the check that finds it, and the finding.
var sick = map[string]struct {
	harm func(w *World)
	want Finding
}{
	"incompletePool": {
		func(w *World) { w.Slices[0].Spec.Pool.ResourceSliceCount = 2 },
		Finding{"", Problem, "gpu.example.com/a", "generation 3 has 1 of 2 slices: a-gpus; the youngest is 70m old", "kubectl delete resourceslices a-gpus # the driver writes the pool anew, if it runs"},
	},
	"invalidPool": {
		func(w *World) {
			second := worldtest.Slice("a", "gpu-3")
			second.Name = "a-more"
			second.Spec.Pool.ResourceSliceCount, w.Slices[0].Spec.Pool.ResourceSliceCount = 2, 2
			w.Slices = append(w.Slices, second)
		},
		Finding{"", Problem, "gpu.example.com/a", "device gpu-3 is in slice a-gpus and in slice a-more", "kubectl delete resourceslices a-gpus a-more # the driver writes the pool anew, if it runs"},
	},
	"sharedPoolName": {
		func(w *World) {
			w.Slices[0].Spec.Pool.Name, w.Slices[1].Spec.Pool.Name = "gpus", "gpus"
			w.Slices[1].Spec.Pool.Generation = 4
			w.Claims, w.Pods = nil, nil
		},
		Finding{
			"", Problem, "gpu.example.com/gpus", "node a (generation 3), node b (generation 4) publish it; a pool of a node needs a name of its own, such as that of the node",
			"kubectl get resourceslices --field-selector spec.driver=gpu.example.com # set another pool name in the configuration of the driver",
		},
	},
	"nodeGone": {
		func(w *World) { w.Nodes = w.Nodes[1:] },
		Finding{"", Problem, "gpu.example.com/a", "there is no node a; devices of the pool are allocated to ml/train", "kubectl delete resourceslices a-gpus"},
	},
	"nodeNotReady": {
		func(w *World) { w.Nodes[0] = worldtest.Node("a", false) },
		Finding{
			"", Problem, "node a", "Ready is Unknown since 60m: Kubelet stopped posting node status; in use by claim ml/train for train",
			"kubectl taint nodes a node.kubernetes.io/out-of-service=nodeshutdown:NoExecute # if it is shut down: its Pods go elsewhere",
		},
	},
	"deviceGone": {
		func(w *World) { w.Slices[0].Spec.Devices = w.Slices[0].Spec.Devices[1:] },
		Finding{"", Problem, "ml/train", "it has gpu.example.com/a/gpu-0 for train", "kubectl delete pod train -n ml # its controller makes another, which gets another device"},
	},
	"staleReservation": {
		func(w *World) { w.Pods[0].UID = "another" },
		Finding{
			"", Problem, "ml/train", "Pod train is another one than that of the reservation; kube-controller-manager releases such claims: does it run?",
			`kubectl patch resourceclaim train -n ml --subresource=status --type=json -p '[{"op":"test","path":"/status/reservedFor/0/uid","value":"pod-train"},{"op":"remove","path":"/status/reservedFor/0"}]'`,
		},
	},
	"idleClaim": {
		func(w *World) { w.Claims[0].Status.ReservedFor, w.Pods = nil, nil },
		Finding{
			"", Problem, "ml/train", "it keeps gpu.example.com/a/gpu-0 since 59m, and is reserved for nobody",
			`kubectl patch resourceclaim train -n ml --subresource=status --type=json -p '[{"op":"test","path":"/metadata/resourceVersion","value":"7"},{"op":"remove","path":"/status/allocation"}]'`,
		},
	},
	"stuckClaim": {
		func(w *World) { w.Claims[0].DeletionTimestamp = new(worldtest.At(60)) },
		Finding{"", Problem, "ml/train", "deleted 59m ago, and waits for finalizers resource.kubernetes.io/delete-protection, while it is reserved for train", "kubectl delete pod train -n ml"},
	},
	"missingClass": {
		func(w *World) {
			w.ClaimTemplates = []*resourcev1.ResourceClaimTemplate{{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "big"}}}
			w.ClaimTemplates[0].Spec.Spec.Devices.Requests = []resourcev1.DeviceRequest{{FirstAvailable: []resourcev1.DeviceSubRequest{{DeviceClassName: "gpus"}}}}
		},
		Finding{"", Problem, "gpus", "template ml/big asks for it; there is a class gpu", "kubectl get deviceclasses # install the class with its driver, or name one of these"},
	},
	"emptyClass": {
		func(w *World) {
			w.Classes = append(w.Classes, worldtest.Class("big", worldtest.OfDriver, `device.capacity["`+worldtest.Driver+`"].memory.compareTo(quantity("100Gi")) > 0`))
			waits := worldtest.Claim("waits", "", nil)
			waits.Spec.Devices.Requests[0].Exactly.DeviceClassName = "big"
			w.Claims, w.Pods = append(w.Claims, waits), append(w.Pods, worldtest.Pod("waits", "", "waits"))
		},
		Finding{
			"", Problem, "big",
			`device.driver == "gpu.example.com" leaves 8 devices, then device.capacity["gpu.example.com"].memory.compareTo(quantity("100Gi")) > 0 leaves 0 devices; claim ml/waits asks for it`,
			"kubectl edit deviceclass big",
		},
	},
	"taintedDevice": {
		func(w *World) {
			w.Slices[0].Spec.Devices[0].Taints = []resourcev1.DeviceTaint{{Key: "xid", Value: "79", Effect: resourcev1.DeviceTaintEffectNoExecute}}
		},
		Finding{"", Problem, "gpu.example.com", "xid=79:NoExecute on gpu.example.com/a/gpu-0; in use by claim ml/train", "kubectl get resourceslice a-gpus -o yaml # the driver has set the taint: its log says why"},
	},
	"idleTaintRule": {
		func(w *World) {
			w.Rules = []inventory.TaintRule{{Name: "old", Selector: &resourcev1.DeviceTaintSelector{Pool: new("gone")}, Taint: inventory.Taint{Key: "repair", Effect: resourcev1.DeviceTaintEffectNoSchedule, Rule: "old"}}}
		},
		Finding{"", Hint, "old", "the taint repair:NoSchedule by DeviceTaintRule old is on no device", "kubectl delete devicetaintrule old"},
	},
	"severalWriters": {
		func(w *World) { w.Writers["b-gpus"] = []string{"other-plugin"} },
		Finding{
			"", Hint, "gpu.example.com", "the managed fields say who wrote: the pools of a by gpu-plugin; the pools of b by other-plugin",
			"kubectl get resourceslices --field-selector spec.driver=gpu.example.com -o yaml --show-managed-fields",
		},
	},
	"staleSlice": {
		func(w *World) {
			old := worldtest.Slice("a", "gpu-0")
			old.Name, old.Spec.Pool.Generation = "a-old", 2
			w.Slices = append(w.Slices, old)
		},
		Finding{"", Hint, "gpu.example.com/a", "the newest generation is 3, and there is a-old (generation 2)", "kubectl delete resourceslices a-old"},
	},
	"oddDevice": {
		func(w *World) {
			w.Slices[1].Spec.Devices[3].Capacity["memory"] = resourcev1.DeviceCapacity{Value: resource.MustParse("40Gi")}
		},
		Finding{
			"", Hint, "gpu.example.com " + tabletest.Product, "capacity memory is 80Gi, but 40Gi on gpu.example.com/b/gpu-3",
			"kubectl get resourceslices --field-selector spec.driver=gpu.example.com -o yaml",
		},
	},
	"unusedClaim": {
		func(w *World) { w.Claims = append(w.Claims, worldtest.Claim("old", "", nil)) },
		Finding{"", Hint, "ml/old", "it is 60m old", "kubectl delete resourceclaim old -n ml"},
	},
}

// TestFindings: each check finds what is wrong, and nothing else does.
func TestFindings(t *testing.T) {
	t.Parallel()
	found, skipped := Check(t.Context(), healthy())
	require.Empty(t, found)
	require.Empty(t, skipped)
	for name, test := range sick {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := healthy()
			test.harm(w)
			found, _ := Check(t.Context(), w)
			test.want.Check = name
			require.Equal(t, []Finding{test.want}, found)
		})
	}
	for _, c := range checks {
		require.Contains(t, sick, c.name)
	}
}

// TestYoung: what controllers and drivers may still be doing is no finding.
func TestYoung(t *testing.T) {
	t.Parallel()
	w := healthy()
	w.Slices[0].Spec.Pool.ResourceSliceCount = 2
	w.Slices[0].CreationTimestamp = metav1.NewTime(worldtest.Now.Add(-10 * time.Second))
	w.Claims[0].Status.ReservedFor, w.Pods = nil, nil
	w.Claims[0].Status.Allocation.AllocationTimestamp = new(metav1.NewTime(worldtest.Now.Add(-time.Minute)))
	young := worldtest.Claim("young", "", nil)
	young.CreationTimestamp = metav1.NewTime(worldtest.Now.Add(-time.Minute))
	w.Claims = append(w.Claims, young)
	found, _ := Check(t.Context(), w)
	require.Empty(t, found)
}

// TestUnseen: a check whose objects cannot be read is named, and finds nothing.
func TestUnseen(t *testing.T) {
	t.Parallel()
	w := healthy()
	w.Slices, w.Nodes, w.IsWithoutSlices = nil, nil, true
	w.Unseen = map[string]bool{"resourceslices": true, "nodes": true}
	found, skipped := Check(t.Context(), w)
	require.Empty(t, found)
	require.Contains(t, skipped, "nodeGone")
	require.NotContains(t, skipped, "idleClaim")
}

// TestTables renders what people are shown.
func TestTables(t *testing.T) {
	shows := func(w *World) func(out io.Writer) error {
		found, skipped := Check(t.Context(), w)
		return func(out io.Writer) error { return writeFindings(out, countFindings(w, found), found, skipped) }
	}
	broken := healthy()
	for _, name := range []string{"idleClaim", "emptyClass", "oddDevice", "unusedClaim"} {
		sick[name].harm(broken)
	}
	for _, node := range []string{"c", "d", "e", "f", "g", "h", tabletest.Node} {
		broken.Slices = append(broken.Slices, worldtest.Slice(node, "gpu-0"))
	}
	unseen := healthy()
	unseen.Unseen = map[string]bool{"resourceslices": true, "nodes": true}
	unseen.Slices, unseen.IsWithoutSlices = nil, true
	tabletest.Golden(t, map[string]func(out io.Writer) error{"show": shows(broken), "show-healthy": shows(healthy()), "show-unseen": shows(unseen)}, tabletest.Node)
	unseen.Namespace = "ml"
	require.Equal(t, "No problems found in 1 claim in namespace ml", countFindings(unseen, nil))
}

// TestBlind: without the right to list anything that is checked there is no answer, and no empty one for programs.
func TestBlind(t *testing.T) {
	t.Parallel()
	for _, arguments := range [][]string{nil, {"-o", "json"}, {"-n", worldtest.Namespace}} {
		w := worldtest.New(t, worldtest.Slice("a", "gpu-0"), worldtest.Claim("train", "a", []string{"gpu-0"}, "train"))
		w.Client.PrependReactor("list", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), "", nil)
		})
		a := w.Run(New, arguments...)
		require.ErrorContains(t, a.Err, "cannot list resourceslices: ask for the ClusterRole dra-viewer, or for the right to list them\ncannot list resourceclaims in ", arguments)
		require.Equal(t, cli.ExitFailed, cli.ExitCode(a.Err), arguments)
		require.Empty(t, a.Out+a.ErrOut, arguments)
	}
}

// TestRead: a user of one namespace gets what can be said of its claims, and slices are read once.
func TestRead(t *testing.T) {
	t.Parallel()
	w := worldtest.New(t, worldtest.Slice("a", "gpu-0"), worldtest.Claim("train", "a", []string{"gpu-0"}, "train"), worldtest.Pod("train", "a", "train"), worldtest.Class("gpu", worldtest.OfDriver))
	w.Forbid("nodes", "pods", "resourceclaims", "resourceclaimtemplates")
	a := w.Run(New)
	require.NoError(t, a.Err)
	require.Equal(t, "No problems found in 1 pool with 1 device, 1 claim in namespace ml\n\nnot checked: nodeGone, nodeNotReady\n", a.Out)
	lists := 0
	for _, action := range w.Client.Actions() {
		if action.GetResource().Resource == "resourceslices" {
			lists++
		}
	}
	require.Equal(t, 1, lists)
}
