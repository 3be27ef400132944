package status

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cluster"
	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/history"
	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/why"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory/taintrules"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// world is the state of a cluster.
type world struct {
	slices []*resourcev1.ResourceSlice
	claims []*resourcev1.ResourceClaim
	pods   []*corev1.Pod
	// failures are the events about failures to prepare.
	failures []*corev1.Event
	rules    []inventory.TaintRule
	// notReady are the names of nodes that are not ready.
	notReady map[string]bool
	// unseen says what could not be read, if anything: DeviceTaintRules or nodes.
	unseen string
	// selected are the names of the nodes that the user selects by labels, or nil where all are shown.
	selected map[string]bool
}

// addNodes learns which nodes are ready, and which are selected if any selection is asked for.
func (w *world) addNodes(nodes []*corev1.Node, isSelection bool) {
	w.notReady = map[string]bool{}
	if isSelection {
		w.selected = map[string]bool{}
	}
	for _, node := range nodes {
		if isSelection {
			w.selected[node.Name] = true
		}
		if !inventory.IsNodeReady(node) {
			w.notReady[node.Name] = true
		}
	}
}

func (w *world) addUnseen(unseen string) {
	w.unseen = strings.Trim(w.unseen+"\n"+unseen, "\n")
}

// describeUnseenNodes says what is not known of devices if their nodes are not.
func describeUnseenNodes(err error) string {
	return fmt.Sprintf("Nodes are not seen, and all are shown as Ready: %v", err)
}

// failedPrepare is the reason of the events of a kubelet that cannot prepare.
const failedPrepare = "FailedPrepareDynamicResources"

// readCluster reads a world, and which nodes have the labels of a selector. Without one, the right to
// list nodes is not required.
func readCluster(ctx context.Context, client kubernetes.Interface, selector string) (*world, error) {
	cached := metav1.ListOptions{ResourceVersion: "0"}
	slices, err := client.ResourceV1().ResourceSlices().List(ctx, cached)
	if err != nil {
		return nil, fmt.Errorf("list resourceslices: %w", err)
	}
	claims, err := client.ResourceV1().ResourceClaims("").List(ctx, cached)
	if err != nil {
		return nil, fmt.Errorf("list resourceclaims: %w", err)
	}
	pods, err := client.CoreV1().Pods("").List(ctx, cached)
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	events, err := client.CoreV1().Events("").List(ctx, metav1.ListOptions{FieldSelector: "reason=" + failedPrepare})
	if err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	nodes, nodesErr := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: selector, ResourceVersion: "0"})
	if nodesErr != nil && (selector != "" || !apierrors.IsForbidden(nodesErr)) {
		return nil, fmt.Errorf("list nodes: %w", nodesErr)
	}
	w := &world{slices: cluster.Pointers(slices.Items), claims: cluster.Pointers(claims.Items), pods: cluster.Pointers(pods.Items), failures: cluster.Pointers(events.Items)}
	rules, unseen, err := taintrules.List(ctx, client)
	w.unseen = unseen
	if nodesErr != nil {
		w.addUnseen(describeUnseenNodes(nodesErr))
	} else {
		w.addNodes(cluster.Pointers(nodes.Items), selector != "")
	}
	for _, rule := range rules {
		w.rules = append(w.rules, inventory.TaintRuleOf(rule))
	}
	return w, err
}

// takeInventory takes an inventory of the world.
func (w *world) takeInventory() *inventory.Inventory {
	all := make([]inventory.Slice, len(w.slices))
	for i, slice := range w.slices {
		all[i] = inventory.SliceOf(slice)
		all[i].Taints = map[string][]inventory.Taint{}
		for j := range slice.Spec.Devices {
			device := &slice.Spec.Devices[j]
			for k := range device.Taints {
				all[i].Taints[device.Name] = append(all[i].Taints[device.Name], inventory.TaintOf(&device.Taints[k]))
			}
		}
		all[i].Facts = inventory.FactsOf(&slice.Spec)
	}
	source := inventory.Source{
		Nodes:       func() []string { return nil },
		IsNodeReady: func(name string) bool { return !w.notReady[name] },
		Slices:      func() []inventory.Slice { return all },
		Allocations: w.listAllocations,
		TaintRules:  func() ([]inventory.TaintRule, string) { return w.rules, w.unseen },
		Changes:     func() uint64 { return 0 },
	}
	return source.Take()
}

func (w *world) listAllocations() []inventory.Allocation {
	consumers := w.listConsumers()
	var all []inventory.Allocation
	for _, claim := range w.claims {
		if claim.Status.Allocation == nil {
			continue
		}
		pods := history.ConsumingPods(claim)
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
			all = append(all, allocation)
		}
	}
	return all
}

// consumer is a Pod with claims.
type consumer struct {
	// started says that it got past the preparation of its claims, and failure why it
	// does not.
	started bool
	failure string
}

func (w *world) listConsumers() map[string]consumer {
	all := map[string]consumer{}
	known := why.NewCluster(w.claims, w.failures)
	for _, pod := range w.pods {
		if len(pod.Spec.ResourceClaims) == 0 && pod.Status.ExtendedResourceClaimStatus == nil {
			continue
		}
		found := consumer{started: hasStarted(pod)}
		if !found.started {
			found.failure = known.PrepareFailure(pod)
		}
		all[pod.Namespace+"/"+pod.Name] = found
	}
	return all
}

func hasStarted(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning || slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReadyToStartContainers && c.Status == corev1.ConditionTrue
	})
}
