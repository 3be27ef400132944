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

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
	"github.com/kwok-dra/kwok-dra/internal/claims/templates"
	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/observe"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// observer reads what views are made of, from the caches and the API server. It writes nothing.
type observer struct {
	Options
	states *states
}

// newDriver returns what is known of the drivers of a view's node, given the driver Pods on it, and of those with templates
// among them. The view's Pod is nil in a look at a claim.
func (o *observer) newDriver(v *plan.PodView, pods devices.Pods) (all plan.Driver, ofTemplates *templates.Driver) {
	hasSlices := func(driver string) (has, known bool) {
		isCached := func(key facts.SlicesKey) bool {
			return slices.ContainsFunc(o.Caches.Slices.Of(key), func(s *facts.Slice) bool { return s.Driver == driver })
		}
		has = isCached(facts.SlicesKey{Node: v.Node.Name}) || slices.ContainsFunc(v.Set.Shared(), func(t *devices.Template) bool {
			return t.Driver == driver && t.Selects(v.Node) && isCached(facts.SlicesKey{Driver: driver, Pool: t.SharedPool()})
		})
		if has || v.Claims.Live == nil {
			return has, true
		}
		has, known = v.Claims.Live.HaveSlices[driver]
		return has, known
	}
	ofTemplates = templates.New(v.Set, v.Node, templates.Slices{Of: hasSlices, Have: o.Caches.Slices.HaveDevice}, pods)
	if o.Gate != nil {
		ofTemplates.CheckGate = func(claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) error {
			return o.Gate.Check(v.Node, claim, result)
		}
	}
	if o.Kubelets == nil || !o.Kubelets.Enabled() {
		return ofTemplates, ofTemplates
	}
	return o.Kubelets.AddDrivers(ofTemplates, v.Pod, v.Node, v.Set.HasDriver), ofTemplates
}

// readNeed reads from the API server what a view lacks.
func (o *observer) readNeed(ctx context.Context, v *plan.PodView, need *plan.Need) error {
	switch {
	case need.LiveView:
		v.Claims.Live = plan.NewLive()
		if !slices.ContainsFunc(v.Set.Templates, func(t *devices.Template) bool { return t.DriverPod != nil }) {
			return nil
		}
		pods, err := o.DriverPods.Live(ctx, v.Set.Templates, v.Node)
		if err == nil {
			v.Driver, _ = o.newDriver(v, pods)
		}
		return err
	case need.Slices != "":
		v.Claims.Live.HaveSlices[need.Slices] = false
		for _, name := range []string{v.Node.Name, ""} { // slices of the node, and of pools that nodes share
			selector := fields.Set{resourcev1.ResourceSliceSelectorNodeName: name, resourcev1.ResourceSliceSelectorDriver: need.Slices}
			list, err := o.Client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{FieldSelector: selector.String()})
			if err != nil {
				return fmt.Errorf("list slices of driver %s on node %s: %w", need.Slices, v.Node.Name, err)
			}
			isOnNode := func(slice resourcev1.ResourceSlice) bool {
				t := v.Set.SharedPool(need.Slices, slice.Spec.Pool.Name)
				return name != "" || t != nil && t.Selects(v.Node)
			}
			if slices.ContainsFunc(list.Items, isOnNode) {
				v.Claims.Live.HaveSlices[need.Slices] = true
				return nil
			}
		}
		return nil
	}
	claim, err := o.Client.ResourceV1().ResourceClaims(v.Pod.Namespace).Get(ctx, need.Claim, metav1.GetOptions{})
	switch {
	case err == nil:
		v.Claims.Live.Claims[need.Claim] = observe.SlimClaim(claim)
	case apierrors.IsNotFound(err):
		v.Claims.Live.Claims[need.Claim] = nil
	default:
		return fmt.Errorf("fetch ResourceClaim %s: %w", need.Claim, err)
	}
	return nil
}

// actsFor reports whether this replica acts for a Pod with these claims. The leader acts for a Pod with a claim that Pods
// on several nodes can use, so that only one replica writes the claim; the replica of the node acts for all others. Claims
// of real drivers count as others: those drivers write them themselves, and only the replica of the node reaches them.
func (o *observer) actsFor(node *corev1.Node, claims []*resourcev1.ResourceClaim) bool {
	set := o.Config.Current()
	hasTemplate := func(r resourcev1.DeviceRequestAllocationResult) bool { return set.HasDriver(r.Driver) }
	mayBeReal := set != nil && o.Kubelets != nil && o.Kubelets.Enabled()
	if slices.ContainsFunc(claims, func(claim *resourcev1.ResourceClaim) bool {
		return claim.Status.Allocation != nil && facts.NodeOf(claim) == "" &&
			(!mayBeReal || slices.ContainsFunc(claim.Status.Allocation.Devices.Results, hasTemplate))
	}) {
		return o.Owner.Leads()
	}
	return o.Owner.Acts(node.Name, true)
}

// readUncachedConsumers gets the Pods that a claim is reserved for and that the cache lacks. The result is never nil.
func (o *observer) readUncachedConsumers(ctx context.Context, claim *resourcev1.ResourceClaim) ([]*corev1.Pod, error) {
	uncached := []*corev1.Pod{}
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
			uncached = append(uncached, pod)
		}
	}
	return uncached, nil
}

// claimNodes says who acts for the nodes of the Pods of a claim.
type claimNodes struct {
	*observer
	claim *resourcev1.ResourceClaim
}

// Has reports whether the node is a fake one of this installation.
func (n claimNodes) Has(name string) bool { return n.Caches.Nodes.Has(name) }

// MayBeForeign reports whether another installation may act for the node. Where the selection lists all nodes, the records of
// slices tell: those of the node, and of the pools that the claim has devices of.
func (n claimNodes) MayBeForeign(name string) bool {
	switch {
	case n.Has(name):
		return false
	case n.Caches.Nodes.MayBeForeign(name):
		return true
	}
	keys := []facts.SlicesKey{{Node: name}}
	if allocation := n.claim.Status.Allocation; allocation != nil {
		for _, result := range allocation.Devices.Results {
			keys = append(keys, facts.SlicesKey{Driver: result.Driver, Pool: result.Pool})
		}
	}
	as := n.Owner.Installation()
	return slices.ContainsFunc(keys, func(key facts.SlicesKey) bool {
		return slices.ContainsFunc(n.Caches.Slices.Of(key), func(slice *facts.Slice) bool { return as.IsAnother(slice.Installation) })
	})
}

// preparedConsumers lists the consumers on fake nodes that a claim is prepared for, and the joining Pod that it is being
// prepared for, if any. The oldest is first. Those of another installation count, or each of the two would keep writing its own.
func (o *observer) preparedConsumers(claim *resourcev1.ResourceClaim, consumers []*corev1.Pod, joining types.UID) []*corev1.Pod {
	var prepared []*corev1.Pod
	users := append(o.states.usersOf(claim.UID), joining)
	for _, pod := range consumers {
		// A Pod that does not name the claim has lost the name since the claim was prepared.
		isPrepared := facts.ReadyToStart(pod) == corev1.ConditionTrue || slices.Contains(users, pod.UID) || !facts.NamesClaim(pod, claim)
		if nodes := (claimNodes{o, claim}); nodes.Has(pod.Spec.NodeName) && isPrepared || nodes.MayBeForeign(pod.Spec.NodeName) {
			prepared = append(prepared, pod)
		}
	}
	slices.SortFunc(prepared, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return prepared
}

// Kubelets know the real drivers of fake nodes, and call them.
type Kubelets interface {
	// Enabled reports whether real drivers can register.
	Enabled() bool
	// AddDrivers adds what is known of the real drivers of a node, for a Pod, or for none if that is nil, to the drivers with
	// templates. It sets their IsReal, and changes nothing else.
	AddDrivers(ofTemplates *templates.Driver, pod *corev1.Pod, node *corev1.Node, hasTemplates func(driver string) bool) plan.Driver
	// Call asks real drivers in the background. OnChange announces the Pod when they have answered.
	Call(pod *corev1.Pod, node *corev1.Node, call *plan.Call, hasTemplates func(driver string) bool)
	// Acknowledge says that a failure of a Pod was reported. If it was the answer of real drivers, a
	// Driver no longer gives that answer.
	Acknowledge(pod *corev1.Pod, node *corev1.Node, failure error)
	// OnChange calls node when drivers of a node come, go or report health, and pod when they have answered for a Pod.
	OnChange(node func(name string), pod func(key types.NamespacedName))
}

// Gate holds back what drivers with templates could prepare at once, as a driver does that waits for other nodes.
type Gate interface {
	// Check returns a *plan.Pending or a *plan.Failure if a driver cannot prepare an allocated device on a node yet. It
	// changes nothing.
	Check(node *corev1.Node, claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) error
	// OnChange calls node when Check may have another answer for the Pods of a node.
	OnChange(node func(name string))
}

// DeviceHealth knows the health of devices, and what the API server stores of it.
type DeviceHealth interface {
	// Shown is what Pods show now. It is nil while the API server drops it.
	Shown() plan.Health
	// Stored is called with the API server's answer to a patch of it.
	Stored(ctx context.Context, pod *corev1.Pod)
	// OnChange calls enqueue with how many Pods, at most, to look at again, since the API server may store more now.
	OnChange(enqueue func(count int))
}
