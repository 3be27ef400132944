package clusterdevices

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/history"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// Objects are those of a cluster that say what state its devices have.
type Objects struct {
	Slices []*resourcev1.ResourceSlice
	// Summaries are those of the Slices, in their order. If they are nil, TakeInventory makes them.
	Summaries []inventory.Slice
	Claims    []*resourcev1.ResourceClaim
	Pods      []*corev1.Pod
	// Failures are the events about failures to prepare.
	Failures []*corev1.Event
	Rules    []inventory.TaintRule
	// NotReady are the names of nodes that are not ready.
	NotReady map[string]bool
	// Unseen says what could not be read, if anything.
	Unseen string
	// BlockIncomplete blocks the free devices of incomplete pools, of which the scheduler gives none.
	BlockIncomplete bool
	// FailUnhealthy has devices fail that a kubelet reports as unhealthy.
	FailUnhealthy bool
}

// FailedPrepare is the reason of the events of a kubelet that cannot prepare.
const FailedPrepare = v1alpha1.ReasonFailedPrepare

// AddReadiness learns which nodes are ready.
func (o *Objects) AddReadiness(nodes []*corev1.Node) {
	o.NotReady = map[string]bool{}
	for _, node := range nodes {
		if !inventory.IsNodeReady(node) {
			o.NotReady[node.Name] = true
		}
	}
}

// TakeInventory takes an inventory.
func (o *Objects) TakeInventory() *inventory.Inventory {
	all := o.Summaries
	if all == nil {
		all = make([]inventory.Slice, len(o.Slices))
		for i, slice := range o.Slices {
			all[i] = Summarize(slice)
		}
	}
	source := inventory.Source{
		Nodes:       func() []string { return nil },
		IsNodeReady: func(name string) bool { return !o.NotReady[name] },
		Slices:      func() []inventory.Slice { return all },
		Allocations: o.listAllocations,
		TaintRules:  func() ([]inventory.TaintRule, string) { return o.Rules, o.Unseen },
		Changes:     func() uint64 { return 0 },
	}
	taken := source.Take()
	for _, item := range taken.Items {
		for i := range item.Pools {
			if pool := &item.Pools[i]; o.BlockIncomplete && !pool.Complete() {
				blockFree(pool)
			}
		}
	}
	return taken
}

// Summarize returns what an inventory needs of a slice.
func Summarize(slice *resourcev1.ResourceSlice) inventory.Slice {
	summary := inventory.SliceOf(slice)
	summary.Taints = map[string][]inventory.Taint{}
	for i := range slice.Spec.Devices {
		device := &slice.Spec.Devices[i]
		for k := range device.Taints {
			summary.Taints[device.Name] = append(summary.Taints[device.Name], inventory.TaintOf(&device.Taints[k]))
		}
	}
	summary.Facts = inventory.FactsOf(&slice.Spec)
	return summary
}

// blockFree blocks the free devices of an incomplete pool.
func blockFree(pool *inventory.Pool) {
	pool.Devices = slices.Clone(pool.Devices) // pools of one kind may share them
	for i := range pool.Devices {
		if device := &pool.Devices[i]; device.State == inventory.Free {
			device.State = inventory.Blocked
		}
	}
}

func (o *Objects) listAllocations() []inventory.Allocation {
	consumers := o.listConsumers()
	var all []inventory.Allocation
	for _, claim := range o.Claims {
		if claim.Status.Allocation == nil {
			continue
		}
		pods := ConsumingPods(claim)
		var used bool
		var failure string
		for _, pod := range pods {
			consumer := consumers[claim.Namespace+"/"+pod]
			used, failure = used || consumer.started, cmp.Or(failure, consumer.failure)
		}
		for i := range claim.Status.Allocation.Devices.Results {
			result := &claim.Status.Allocation.Devices.Results[i]
			allocation := inventory.AllocationOf(claim, result)
			allocation.Node, allocation.Covered = facts.NodeOf(claim), true
			has := &allocation.Claim
			// Some drivers do not say in the claim that a device is ready: then the state of the Pod shows it.
			ready := inventory.ReadyOf(claim, result)
			has.Pods, has.Prepared = pods, used || ready != nil && ready.Status == metav1.ConditionTrue
			if !has.Prepared && has.Failure == "" {
				has.Failure = failure
			}
			if o.FailUnhealthy {
				has.Failure = cmp.Or(has.Failure, unhealthyMessageOf(consumers, pods, claim, result))
			}
			all = append(all, allocation)
		}
	}
	return all
}

// unhealthyMessageOf is what the kubelet of any of the Pods says of an unhealthy device, or "".
func unhealthyMessageOf(consumers map[string]consumer, pods []string, claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) string {
	for _, name := range pods {
		pod := consumers[claim.Namespace+"/"+name].pod
		if pod == nil || len(pod.Status.ContainerStatuses) == 0 {
			continue
		}
		if message := UnhealthyMessage(pod, PodClaimOf(pod, claim), claim, result); message != "" {
			return message
		}
	}
	return ""
}

// consumer is a Pod with claims.
type consumer struct {
	pod *corev1.Pod
	// started says that it got past the preparation of its claims, and failure why it
	// does not.
	started bool
	failure string
}

func (o *Objects) listConsumers() map[string]consumer {
	all := map[string]consumer{}
	newest := map[types.UID]*corev1.Event{}
	for _, event := range o.Failures {
		uid := event.InvolvedObject.UID
		if known := newest[uid]; known == nil || history.LastSeen(event).After(history.LastSeen(known)) {
			newest[uid] = event
		}
	}
	for _, pod := range o.Pods {
		if len(pod.Spec.ResourceClaims) == 0 && pod.Status.ExtendedResourceClaimStatus == nil {
			continue
		}
		found := consumer{pod: pod, started: HasStarted(pod)}
		if event := newest[pod.UID]; !found.started && event != nil && event.Reason == FailedPrepare {
			found.failure = event.Message
		}
		all[pod.Namespace+"/"+pod.Name] = found
	}
	return all
}

// HasStarted reports whether a Pod got past the preparation of its claims.
func HasStarted(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning || slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReadyToStartContainers && c.Status == corev1.ConditionTrue
	})
}

// ConsumingPods are the names of the Pods for which a claim is reserved.
func ConsumingPods(claim *resourcev1.ResourceClaim) []string {
	var pods []string
	for _, consumer := range claim.Status.ReservedFor {
		if facts.IsPod(consumer) {
			pods = append(pods, consumer.Name)
		}
	}
	slices.Sort(pods)
	return pods
}
