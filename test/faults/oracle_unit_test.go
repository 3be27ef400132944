package faults

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// right is a state in which all is as it is to be: a node with a pool of one
// slice, and a Pod that has a device of it.
func right() *state {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "n1", Labels: map[string]string{kindLabel: "b"}, Annotations: map[string]string{fakeAnnotation: "fake"}},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	pod := boundPod("p", "n")
	pod.UID, pod.CreationTimestamp = "p1", metav1.Unix(1, 0)
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue}}
	slice := resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "s", Labels: map[string]string{managedBy: "kwok-dra"}, OwnerReferences: []metav1.OwnerReference{{Name: "n", UID: "n1"}}},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: gpuDriver, NodeName: new("n"), Pool: resourcev1.ResourcePool{Name: "n", Generation: 1, ResourceSliceCount: 1},
			Devices: []resourcev1.Device{ownDevice("gpu-0", 0), ownDevice("gpu-1", 1)},
		},
	}
	claim := resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Status: resourcev1.ResourceClaimStatus{
		ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "p", UID: "p1"}},
		Allocation: &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
			Results: []resourcev1.DeviceRequestAllocationResult{{Driver: gpuDriver, Pool: "n", Device: "gpu-0"}},
		}},
		Devices: []resourcev1.AllocatedDeviceStatus{{
			Driver: gpuDriver, Pool: "n", Device: "gpu-0",
			Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}},
		}},
	}}
	claim.Status.Devices[0].Data = ownData(`{"node": "n", "device": "gpu-0"}`)
	return &state{
		inForce: inForce{templates: templates{"gpu": {name: "gpu", driver: gpuDriver, kinds: []string{"b"}, device: "gpu", count: 2, revision: 1}}},
		found: found{
			nodes:  map[string]*corev1.Node{"n": node},
			pods:   map[types.UID]*corev1.Pod{"p1": pod},
			claims: []resourcev1.ResourceClaim{claim},
			slices: []resourcev1.ResourceSlice{slice},
		},
	}
}

// TestOracle has the oracle find each thing that may be wrong.
func TestOracle(t *testing.T) {
	t.Parallel()
	require.Empty(t, right().wrong())
	for about, spoil := range map[string]func(s *state){
		"a pool is missing":             func(s *state) { s.slices = nil },
		"a pool is too many":            func(s *state) { s.templates = nil },
		"a pool of a node that is gone": func(s *state) { s.nodes = nil },
		"a pool of a retired node":      func(s *state) { s.nodes["n"].Labels[retiredLabel] = "true" },
		"a device is missing":           func(s *state) { s.slices[0].Spec.Devices = s.slices[0].Spec.Devices[:1] },
		"a device is there twice":       func(s *state) { s.slices[0].Spec.Devices = append(s.slices[0].Spec.Devices, ownDevice("gpu-1", 1)) },
		"an attribute is old":           func(s *state) { s.slices[0].Spec.Devices[1] = ownDevice("gpu-1", 7) },
		"a taint is missing":            func(s *state) { s.nodes["n"].Annotations[taintAnnotation] = "gpu-1:a=b:NoSchedule" },
		"the slice count is wrong":      func(s *state) { s.slices[0].Spec.Pool.ResourceSliceCount = 2 },
		"a slice of the node before":    func(s *state) { s.slices[0].OwnerReferences[0].UID = "n0" },
		"a slice without label":         func(s *state) { s.slices[0].Labels = nil },
		"a slice without owner":         func(s *state) { s.slices[0].OwnerReferences = nil },
		"a Pod is not told":             func(s *state) { s.pods["p1"].Status.Conditions = nil },
		"a held Pod is not told": func(s *state) {
			s.pods["p1"].Labels = map[string]string{holdLabel: "true"}
			s.pods["p1"].Status = corev1.PodStatus{Phase: corev1.PodPending}
		},
		"a Pod without node is told": func(s *state) { s.pods["p1"].Spec.NodeName = "" },
		"a Pod waits for nothing": func(s *state) {
			s.pods["p1"].Status.Conditions, s.claims = nil, nil
		},
		"an entry is missing":           func(s *state) { s.claims[0].Status.Devices = nil },
		"an entry is too many":          func(s *state) { s.pods = nil },
		"an entry is of another device": func(s *state) { s.claims[0].Status.Devices[0].Device = "gpu-1" },
		"an entry says something else":  func(s *state) { s.claims[0].Status.Devices[0].Data = ownData(`{"node": "n", "device": "gpu-1"}`) },
		"an entry is not ready":         func(s *state) { s.claims[0].Status.Devices[0].Conditions = nil },
		"two generations": func(s *state) {
			other := *s.slices[0].DeepCopy()
			other.Spec.Pool.Generation = 2
			s.slices = append(s.slices, other)
		},
	} {
		s := right()
		spoil(s)
		require.NotEmpty(t, s.wrong(), about)
	}
}

// TestClaimOfANodeThatIsGone: its entries are to go, unless a sidecar may take the node for
// somebody else's.
func TestClaimOfANodeThatIsGone(t *testing.T) {
	t.Parallel()
	for about, test := range map[string]struct {
		selection selection
		several   bool
		may       bool
	}{
		"all nodes":             {selection{}, true, false},
		"by label, one sidecar": {selection{by: "labels"}, false, false},
		"by label":              {selection{by: "labels"}, true, true},
		"the single node":       {selection{single: "n"}, true, false},
		"not the single node":   {selection{single: "m"}, true, true},
	} {
		s := right()
		s.nodes, s.selection, s.several = nil, test.selection, test.several
		s.claims[0].Status.Allocation.NodeSelector = &corev1.NodeSelector{} // of one node
		require.Equal(t, test.may, len(s.wrongClaims()) == 0, about)
	}
}

// TestClaimOfFormerPods: that nodes share keeps what was reported for a Pod that is gone until
// another one starts, which is then to have it.
func TestClaimOfFormerPods(t *testing.T) {
	t.Parallel()
	for _, started := range []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue} {
		s := right()
		s.templates = templates{"n": {name: "n", driver: gpuDriver, kinds: []string{"b"}, device: "gpu", count: 2, revision: 1, shared: true}}
		s.claims[0].Status.Devices[0].Data = ownData(`{"node": "m", "device": "gpu-0"}`)
		s.pods["p1"].Status.Conditions[0].Status = started
		require.Equal(t, started == corev1.ConditionTrue, len(s.wrongClaims()) > 0)
	}
}

func ownDevice(name string, index int64) resourcev1.Device {
	return resourcev1.Device{Name: name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
		"revision": {IntValue: new(int64(1))}, "index": {IntValue: &index}, "rack": {StringValue: new("none")},
	}}
}

func ownData(data string) *runtime.RawExtension {
	return &runtime.RawExtension{Raw: []byte(data)}
}

// TestForgottenPools: whether one goes that a sidecar may take for somebody else's is
// nobody's fault.
func TestForgottenPools(t *testing.T) {
	t.Parallel()
	s := right()
	s.relaunched, s.selection = true, selection{by: "labels"}
	s.slices[0].Spec.NodeName, s.slices[0].Spec.Driver = nil, "fabric.example.com"
	fabric := poolOf(&s.slices[0])
	require.NotContains(t, s.poolProblems(), fabric, "it may stay")
	require.Equal(t, []poolKey{fabric}, s.unwanted(), "it may go")
}

// TestOrphans: slices of a node that is gone stay where their owner was removed, and a sidecar
// was started since that may take the node for somebody else's.
func TestOrphans(t *testing.T) {
	t.Parallel()
	for about, test := range map[string]struct {
		selection selection
		owned     bool
		may       bool
	}{
		"all nodes":           {selection{}, false, false},
		"by label":            {selection{by: "labels"}, false, true},
		"by label, and owned": {selection{by: "labels"}, true, false},
		"the single node":     {selection{single: "n"}, false, false},
	} {
		s := right()
		s.nodes, s.relaunched, s.selection = nil, true, test.selection
		if !test.owned {
			s.slices[0].OwnerReferences = nil
		}
		require.Equal(t, test.may, len(s.wrongPools()) == 0, about)
	}
}
