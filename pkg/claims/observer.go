package claims

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/pkg/claims/plan"
	"github.com/kwok-dra/kwok-dra/pkg/config"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
	"github.com/kwok-dra/kwok-dra/pkg/observe"
	"github.com/kwok-dra/kwok-dra/pkg/observe/facts"
)

// observer reads what views are made of. It writes nothing.
type observer struct {
	Options
	states *states
}

// readNeed asks the API server for what a view lacks. A failure by the caches is none yet: they may
// lag behind.
func (o *observer) readNeed(ctx context.Context, v *plan.PodView, need *plan.Need) (err error) {
	if need.Claim == "" {
		v.Claims.Live.HaveSlices[need.Slices], err = o.hasLiveSlices(ctx, v.Set, v.Node, need.Slices)
		return err
	}
	claim, err := o.liveClaim(ctx, v.Pod.Namespace, need.Claim)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("fetch ResourceClaim %s: %w", need.Claim, err)
	}
	v.Claims.Live.Claims[need.Claim] = claim
	return nil
}

// liveClaim gets a claim from the API server.
func (o *observer) liveClaim(ctx context.Context, namespace, name string) (*resourcev1.ResourceClaim, error) {
	claim, err := o.Client.ResourceV1().ResourceClaims(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return observe.SlimClaim(claim), nil
}

// hasSlices reports whether a driver has slices on a node, or in a pool that the node shares, by the cache.
func (o *observer) hasSlices(set *config.Set, node *corev1.Node, driver string) bool {
	cached, isOfDriver := o.Caches.Slices, func(s *facts.Slice) bool { return s.Driver == driver }
	return slices.ContainsFunc(cached.Of(facts.NodeKey(node.Name)), isOfDriver) || slices.ContainsFunc(set.Shared(), func(t *devices.Template) bool {
		return t.Driver == driver && t.Selects(node) && slices.ContainsFunc(cached.Of(facts.SlicesKey{Driver: driver, Pool: t.SharedPool()}), isOfDriver)
	})
}

// hasLiveSlices asks for slices of the node, and of pools that it shares.
func (o *observer) hasLiveSlices(ctx context.Context, set *config.Set, node *corev1.Node, driver string) (bool, error) {
	for _, name := range []string{node.Name, ""} {
		selector := fields.Set{resourcev1.ResourceSliceSelectorNodeName: name, resourcev1.ResourceSliceSelectorDriver: driver}
		list, err := o.Client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{FieldSelector: selector.String()})
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

// actsFor reports whether this replica acts for a Pod with those claims: for one with a claim that Pods on
// several nodes can use the leader acts, for others the replica that acts for the node. So only one replica
// writes to a claim. Real drivers write to theirs themselves, and only the replica of their node reaches them.
func (o *observer) actsFor(node *corev1.Node, claims []*resourcev1.ResourceClaim) bool {
	if slices.ContainsFunc(claims, func(claim *resourcev1.ResourceClaim) bool {
		return claim.Status.Allocation != nil && facts.NodeOf(claim) == "" && !o.isOfRealDrivers(claim)
	}) {
		return o.Owner.Leads()
	}
	return o.Owner.Acts(node.Name, true)
}

// isOfRealDrivers reports whether no device of an allocated claim is of a template, while real drivers can register.
func (o *observer) isOfRealDrivers(claim *resourcev1.ResourceClaim) bool {
	set := o.Config.Current()
	if set == nil || o.Kubelets == nil || !o.Kubelets.Enabled() {
		return false
	}
	return !slices.ContainsFunc(claim.Status.Allocation.Devices.Results, func(r resourcev1.DeviceRequestAllocationResult) bool {
		return set.HasDriver(r.Driver)
	})
}

// readUncachedConsumers asks for the Pods that a claim is reserved for and that the cache does not have.
func (o *observer) readUncachedConsumers(ctx context.Context, claim *resourcev1.ResourceClaim) ([]*corev1.Pod, error) {
	unknown := []*corev1.Pod{}
	for _, consumer := range claim.Status.ReservedFor {
		if !facts.IsPod(consumer) || o.Caches.Pods.Has(types.NamespacedName{Namespace: claim.Namespace, Name: consumer.Name}, consumer.UID) {
			continue
		}
		pod, err := o.Client.CoreV1().Pods(claim.Namespace).Get(ctx, consumer.Name, metav1.GetOptions{})
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

// preparedConsumers are the consumers on fake nodes that a claim is prepared for, and the one that it
// is being prepared for, if any. The oldest is first.
func (o *observer) preparedConsumers(claim *resourcev1.ResourceClaim, consumers []*corev1.Pod, joining types.UID) []*corev1.Pod {
	var prepared []*corev1.Pod
	users := append(o.states.usersOf(claim.UID), joining)
	for _, pod := range consumers {
		// What a Pod does not name, but is reserved for it, was prepared before the name was dropped.
		isPrepared := facts.ReadyToStart(pod) == corev1.ConditionTrue || slices.Contains(users, pod.UID) || !facts.NamesClaim(pod, claim)
		if o.Caches.Nodes.Has(pod.Spec.NodeName) && isPrepared {
			prepared = append(prepared, pod)
		}
	}
	slices.SortFunc(prepared, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return prepared
}
