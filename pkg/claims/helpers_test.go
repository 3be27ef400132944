package claims

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/kwok-dra/kwok-dra/pkg/config"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
)

// quiet is a context that logs errors to the test.
func quiet(t testing.TB) context.Context {
	t.Helper()
	return klog.NewContext(t.Context(), ktesting.NewLogger(t, ktesting.NewConfig(ktesting.Verbosity(0))))
}

// newNode is a Node that kwok manages.
func newNode(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			UID:         types.UID("uid-of-" + name),
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
		},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}},
	}
}

// realNode is a Node with a kubelet.
func realNode(name string) *corev1.Node {
	node := newNode(name)
	node.Annotations = nil
	return node
}

// newPod is a Pod bound to the node n, with one container that uses the claims.
// A claim has its own name in the Pod.
func newPod(name string, claims ...string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("uid-of-" + name), Generation: 1},
		Spec:       corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "c", Image: "busybox"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodPending},
	}
	for _, claim := range claims {
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{Name: claim, ResourceClaimName: &claim})
		pod.Spec.Containers[0].Resources.Claims = append(pod.Spec.Containers[0].Resources.Claims, corev1.ResourceClaim{Name: claim})
	}
	return pod
}

func consumer(pod *corev1.Pod) resourcev1.ResourceClaimConsumerReference {
	return resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: pod.Name, UID: pod.UID}
}

// allocated is a claim as the scheduler leaves it: allocated the device gpu-0 of
// driver d on the node n, and reserved for the Pods.
func allocated(name string, pods ...*corev1.Pod) *resourcev1.ResourceClaim {
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("uid-of-" + name)}}
	for _, pod := range pods {
		claim.Status.ReservedFor = append(claim.Status.ReservedFor, consumer(pod))
	}
	allocate(claim, device("d", "gpu-0"))
	return claim
}

func allocate(claim *resourcev1.ResourceClaim, results ...resourcev1.DeviceRequestAllocationResult) {
	claim.Status.Allocation = &resourcev1.AllocationResult{
		Devices: resourcev1.DeviceAllocationResult{Results: results},
		NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n"}}},
		}}},
	}
}

func device(driver, name string) resourcev1.DeviceRequestAllocationResult {
	return resourcev1.DeviceRequestAllocationResult{Request: "gpu", Driver: driver, Pool: "n", Device: name}
}

// template is a ResourcePoolTemplate of a driver with gpu-0 to gpu-3, and more
// of its spec.
func template(driver, more string) string {
	return fmt.Sprintf("---\napiVersion: dra.kwok.x-k8s.io/v1alpha1\nkind: ResourcePoolTemplate\nmetadata: {name: of-%s}\n"+
		"spec:\n  driver: %s\n  devices: [{name: gpu, count: 4}]\n%s", driver, driver, more)
}

// configuration is a KwokDRAConfiguration, its spec in YAML's flow style.
func configuration(spec string) string {
	return "---\napiVersion: dra.kwok.x-k8s.io/v1alpha1\nkind: KwokDRAConfiguration\nmetadata: {name: c}\nspec: " + spec + "\n"
}

func replace(t testing.TB, store *config.Store, documents string) {
	t.Helper()
	decoded, err := config.Decode("test", []byte(documents))
	require.NoError(t, err)
	require.NoError(t, store.Replace("test", decoded))
}

// setOf is the configuration that the documents make.
func setOf(t testing.TB, documents string) *config.Set {
	t.Helper()
	store := config.NewStore("test")
	replace(t, store, documents)
	return store.Current()
}

func lookupOf(set *config.Set, node *corev1.Node) *devices.Lookup {
	return devices.NewLookup(set.Templates, node)
}

// sourceOf is what entries are made from on the node n.
func sourceOf(set *config.Set, pods ...*corev1.Pod) source {
	return source{lookup: lookupOf(set, newNode("n")), named: set.Names, pods: objectsOf(pods)}
}

// attemptOf is a look at a Pod on the node n.
func attemptOf(set *config.Set, pod *corev1.Pod) *attempt {
	a := &attempt{key: keyOf(pod), set: set, node: newNode("n"), state: &podState{uid: pod.UID}}
	a.lookup = lookupOf(set, a.node)
	a.see(pod)
	return a
}
