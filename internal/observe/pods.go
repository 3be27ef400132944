package observe

import (
	"slices"
	"unique"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kwok-dra/kwok-dra/internal/observe/cached"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// Pods are the Pods that are bound to a node.
type Pods struct {
	cached.Informer[*Pod]
}

// Pod is what the cache keeps of a Pod. A Pod with claims is kept whole, since selectors and templates may see all of
// it, but encoded, which takes a third of the memory. Most Pods of a cluster have no claims, and an empty corev1.Pod
// alone takes more than a kilobyte.
type Pod struct {
	// Without claims, a Pod has only the Meta, Node and Terminal.
	cached.Object[corev1.Pod, *corev1.Pod]
	Node     string
	Claims   []types.NamespacedName
	Terminal bool
}

// HasClaims reports whether the Pod has claims.
func (p *Pod) HasClaims() bool { return p.Encoded != "" }

// observePod keeps a Pod. A claim that it had when it was last seen stays with it, whatever clients do to its status: a
// kubelet goes by what it has prepared for the Pod's UID.
func observePod(pod *corev1.Pod, last *Pod) *Pod {
	if last != nil && last.UID == pod.UID {
		claims := facts.ClaimKeys(pod)
		if slices.ContainsFunc(last.Claims, func(key types.NamespacedName) bool { return !slices.Contains(claims, key) }) {
			facts.KeepClaimNames(pod, last.Decode())
		}
	}
	observed := &Pod{Terminal: facts.IsTerminal(pod)}
	if !facts.UsesClaims(pod) {
		observed.Meta, observed.Node = cached.MetaOf(pod), unique.Make(pod.Spec.NodeName).Value()
		return observed
	}
	observed.Node, observed.Claims = pod.Spec.NodeName, facts.ClaimKeys(pod)
	pod.ManagedFields = nil // selectors and templates do not see them
	observed.Object = cached.Keep(pod, "")
	return observed
}

// The names of the indices of Pods with claims, and of claims.
const (
	byNode  = "node"
	byClaim = "claim"
)

var podIndexers = cache.TypedIndexers[*Pod]{
	byNode: func(pod *Pod) ([]string, error) {
		if !pod.HasClaims() {
			return nil, nil
		}
		return []string{pod.Node}, nil
	},
	byClaim: func(pod *Pod) ([]string, error) {
		var names []string
		for _, key := range pod.Claims {
			names = append(names, key.String())
		}
		return names, nil
	},
}

// Get returns a Pod with claims, or nil.
func (p *Pods) Get(key types.NamespacedName) *corev1.Pod {
	if pod := p.Informer.Get(key.String()); pod != nil && pod.HasClaims() {
		return pod.Decode()
	}
	return nil
}

// Has reports whether the cache has a Pod, even if it has no claims.
func (p *Pods) Has(key types.NamespacedName, uid types.UID) bool {
	pod := p.Informer.Get(key.String())
	return pod != nil && pod.UID == uid
}

// On returns the Pods with claims on a node.
func (p *Pods) On(node string) []*Pod {
	return p.By(byNode, node)
}

// Using returns the Pods that name a claim.
func (p *Pods) Using(claim types.NamespacedName) []*Pod {
	return p.By(byClaim, claim.String())
}

// Consumers returns the running Pods that a claim is reserved for. A Pod that does not name the claim, as after a
// client has dropped that from its status, counts by its UID; it has only what identifies it, and its node.
func (p *Pods) Consumers(claim *resourcev1.ResourceClaim) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, observed := range p.Using(Key(claim)) {
		if observed.Terminal {
			continue
		}
		if pod := observed.Decode(); resourceclaim.IsReservedForPod(pod, claim, true) {
			pods = append(pods, pod)
		}
	}
	for _, consumer := range claim.Status.ReservedFor {
		observed := p.Informer.Get(types.NamespacedName{Namespace: claim.Namespace, Name: consumer.Name}.String())
		if facts.IsPod(consumer) && observed != nil && observed.UID == consumer.UID && !observed.Terminal && !slices.Contains(observed.Claims, Key(claim)) {
			pods = append(pods, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: observed.Namespace, Name: observed.Name, UID: observed.UID},
				Spec:       corev1.PodSpec{NodeName: observed.Node},
			})
		}
	}
	return pods
}
