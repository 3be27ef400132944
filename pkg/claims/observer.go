package claims

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/pkg/claims/plan"
	"github.com/kwok-dra/kwok-dra/pkg/claims/templates"
	"github.com/kwok-dra/kwok-dra/pkg/config"
	"github.com/kwok-dra/kwok-dra/pkg/observe"
	"github.com/kwok-dra/kwok-dra/pkg/shard"
)

// observer makes the views that plans are made from. It writes nothing.
type observer struct {
	client kubernetes.Interface
	config *config.Store
	caches *observe.Caches
	owner  *shard.Owner
	states *states
}

// podView is what the caches say of a Pod.
func (o *observer) podView(ctx context.Context, set *config.Set, node *corev1.Node, pod *corev1.Pod, state *podState) *plan.PodView {
	claim := o.claimsOf(pod)
	v := &plan.PodView{
		Pod:   pod,
		Node:  node,
		Set:   set,
		Known: claim,
		Claim: claim,
		Users: func(claim *resourcev1.ResourceClaim) []*corev1.Pod {
			return o.users(claim, o.fakeConsumers(claim), pod.UID)
		},
		Standby: func(claims []*resourcev1.ResourceClaim) bool { return !o.actsFor(node, claims) },
		Last:    state.last,
		Ended:   state.ended,
	}
	v.Driver = templates.New(set, node, templates.Slices{Have: o.caches.Slices.HaveDevice, Of: func(driver string) (bool, error) {
		if published := o.caches.Slices.OfDriver(set, node, driver); published || !v.Live {
			return published, nil
		}
		return o.publishedLive(ctx, set, node, driver)
	}})
	return v
}

// claimsOf gets claims of a Pod's namespace from the cache, each once.
func (o *observer) claimsOf(pod *corev1.Pod) func(name string) (*resourcev1.ResourceClaim, error) {
	known := map[string]*resourcev1.ResourceClaim{}
	return func(name string) (*resourcev1.ResourceClaim, error) {
		if known[name] != nil {
			return known[name], nil
		}
		claim, err := o.caches.Claims.Get(types.NamespacedName{Namespace: pod.Namespace, Name: name})
		if err == nil {
			known[name] = claim
		}
		return claim, err
	}
}

// live makes a view of a Pod ask the API server. A failure by the caches is none yet:
// they may lag behind.
func (o *observer) live(ctx context.Context, v *plan.PodView) {
	v.Live = true
	v.Claim = func(name string) (*resourcev1.ResourceClaim, error) {
		claim, err := o.client.ResourceV1().ResourceClaims(v.Pod.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return observe.SlimClaim(claim), nil
	}
}

// publishedLive asks for slices of the node, and of pools that it shares.
func (o *observer) publishedLive(ctx context.Context, set *config.Set, node *corev1.Node, driver string) (bool, error) {
	for _, name := range []string{node.Name, ""} {
		selector := fields.Set{resourcev1.ResourceSliceSelectorNodeName: name, resourcev1.ResourceSliceSelectorDriver: driver}
		list, err := o.client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{FieldSelector: selector.String()})
		if err != nil {
			return false, fmt.Errorf("list slices of driver %s on node %s: %w", driver, node.Name, err)
		}
		for i := range list.Items {
			t := set.SharedPool(driver, list.Items[i].Spec.Pool.Name)
			if name != "" || t != nil && t.Selects(node) {
				return true, nil
			}
		}
	}
	return false, nil
}

// actsFor reports whether this replica acts for a Pod with those claims: for one
// with a claim that Pods on several nodes can use the leader acts, for others the
// replica that acts for the node. So only one replica writes to a claim.
func (o *observer) actsFor(node *corev1.Node, claims []*resourcev1.ResourceClaim) bool {
	if slices.ContainsFunc(claims, ofSeveralNodes) {
		return o.owner.Leads()
	}
	return o.owner.Acts(node.Name, true)
}

func ofSeveralNodes(claim *resourcev1.ResourceClaim) bool {
	return claim.Status.Allocation != nil && plan.NodeOf(claim) == ""
}

// claimView is what the caches say of a claim.
func (o *observer) claimView(set *config.Set, claim *resourcev1.ResourceClaim, state *claimState) *plan.ClaimView {
	consumers := sync.OnceValue(func() []*corev1.Pod { return o.caches.Pods.Consumers(claim) })
	fake := sync.OnceValue(func() []*corev1.Pod { return o.onFakeNodes(consumers()) })
	return &plan.ClaimView{
		Claim:        claim,
		Set:          set,
		NamePods:     func() bool { return templates.NamePods(set) },
		Consumers:    fake,
		Users:        func() []*corev1.Pod { return o.users(claim, fake(), "") },
		Fake:         o.caches.Nodes.Has,
		Others:       o.caches.Nodes.Others,
		UsedByOthers: func() bool { return o.usedByOthers(state, claim, consumers) },
		Driver: func(name string) plan.Driver {
			if node := o.caches.Nodes.Get(name); node != nil {
				return templates.New(set, node, templates.Slices{})
			}
			return nil
		},
		Memory: state.memory,
	}
}

// unknown asks for the Pods that a claim is reserved for and that the cache does not have.
func (o *observer) unknown(ctx context.Context, claim *resourcev1.ResourceClaim) ([]*corev1.Pod, error) {
	var unknown []*corev1.Pod
	for _, consumer := range claim.Status.ReservedFor {
		if !plan.IsPod(consumer) || o.caches.Pods.Has(types.NamespacedName{Namespace: claim.Namespace, Name: consumer.Name}, consumer.UID) {
			continue
		}
		pod, err := o.client.CoreV1().Pods(claim.Namespace).Get(ctx, consumer.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("get pod %s/%s: %w", claim.Namespace, consumer.Name, err)
		}
		if pod.UID == consumer.UID {
			pod.ManagedFields = nil
			unknown = append(unknown, pod)
		}
	}
	return unknown, nil
}

// fakeConsumers are the consumers of a claim on fake nodes.
func (o *observer) fakeConsumers(claim *resourcev1.ResourceClaim) []*corev1.Pod {
	return o.onFakeNodes(o.caches.Pods.Consumers(claim))
}

func (o *observer) onFakeNodes(pods []*corev1.Pod) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool { return !o.caches.Nodes.Has(pod.Spec.NodeName) })
}

// usedByOthers reports whether another kwok-dra may act for a claim that no consumer on
// a node of this one uses.
func (o *observer) usedByOthers(state *claimState, claim *resourcev1.ResourceClaim, consumers func() []*corev1.Pod) bool {
	if node := plan.NodeOf(claim); node != "" {
		return node != state.node && o.caches.Nodes.Others(node)
	}
	return slices.ContainsFunc(consumers(), func(pod *corev1.Pod) bool { return o.caches.Nodes.Others(pod.Spec.NodeName) })
}

// users are the consumers that a claim is prepared for, and the one that it is
// being prepared for, if any. The oldest is first.
func (o *observer) users(claim *resourcev1.ResourceClaim, consumers []*corev1.Pod, joining types.UID) []*corev1.Pod {
	var prepared []*corev1.Pod
	for _, pod := range consumers {
		if pod.UID == joining || plan.ReadyToStart(pod) == corev1.ConditionTrue || o.states.uses(claim.UID, pod.UID) {
			prepared = append(prepared, pod)
		}
	}
	slices.SortFunc(prepared, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return prepared
}
