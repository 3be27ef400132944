package live

import (
	"slices"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/observe"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// Options are what a Source is made from. All but Kubelets are required.
type Options struct {
	Config   *config.Store
	Caches   *observe.Caches
	Preparer Preparer
	// Kubelets know the real drivers, if there can be any.
	Kubelets Kubelets
	// TaintRules are those of the cluster.
	TaintRules TaintRules
}

// Preparer knows what is prepared.
type Preparer interface {
	// IsPrepared reports whether a claim is prepared for any Pod.
	IsPrepared(claim types.UID) bool
	// FailureOf is why preparing fails for one of the consumers of a claim, or is empty.
	FailureOf(consumers []resourcev1.ResourceClaimConsumerReference) string
	// Changes counts what changes the Pods, the claims, and what is known of both.
	Changes() uint64
}

// Kubelets know the real drivers of fake nodes.
type Kubelets interface {
	Enabled() bool
	Driver(pod *corev1.Pod, node *corev1.Node, templates func(driver string) bool) plan.Driver
}

// TaintRules knows the DeviceTaintRules of the cluster.
type TaintRules interface {
	// Rules returns what could not be read of them, too.
	Rules() (rules []inventory.TaintRule, unseen string)
	Changes() uint64
}

// NewSource makes the source of inventories. Call it before the caches run.
func NewSource(o Options) *inventory.Source {
	s := &source{Options: o}
	o.Caches.Slices.Annotate = annotateSlice
	o.Caches.Nodes.Handle(func(name string, _, now *observe.Node) {
		if now != nil && !inventory.IsNodeReady(now.Decode()) {
			s.notReady.Store(name, struct{}{})
		} else {
			s.notReady.Delete(name)
		}
		s.changes.Add(1)
	})
	o.Caches.Slices.Handle(cache.TypedResourceEventHandlerFuncs[*facts.Slice]{
		AddFunc:    func(*facts.Slice) { s.changes.Add(1) },
		UpdateFunc: func(_, _ *facts.Slice) { s.changes.Add(1) },
		DeleteFunc: func(cache.DeletedObject[*facts.Slice]) { s.changes.Add(1) },
	})
	return &inventory.Source{
		Nodes: func() []string {
			return slices.DeleteFunc(o.Caches.Nodes.Keys(), func(name string) bool { return !o.Caches.Nodes.Has(name) })
		},
		IsNodeReady: func(name string) bool {
			_, notReady := s.notReady.Load(name)
			return !notReady
		},
		Slices: s.listSlices, Allocations: s.listAllocations, TaintRules: o.TaintRules.Rules,
		Changes: func() uint64 { return s.changes.Load() + o.Preparer.Changes() + o.TaintRules.Changes() },
	}
}

type source struct {
	Options
	// changes counts what changes nodes and slices.
	changes atomic.Uint64
	// notReady has the names of nodes that are not ready.
	notReady sync.Map
}

// sliceNote is what an inventory needs of a slice beside what the cache keeps of it.
type sliceNote struct {
	sharing inventory.Sharing
	facts   inventory.Facts
	taints  map[string][]inventory.Taint
}

func annotateSlice(slice *resourcev1.ResourceSlice) any {
	n := sliceNote{sharing: inventory.SharingOf(&slice.Spec), facts: inventory.FactsOf(&slice.Spec)}
	for device, taints := range facts.TimedTaints(slice.Spec.Devices) {
		if n.taints == nil {
			n.taints = map[string][]inventory.Taint{}
		}
		n.taints[device] = inventory.TaintsOf(taints)
	}
	return n
}

// listSlices returns the cached slices.
func (s *source) listSlices() []inventory.Slice {
	var all []inventory.Slice
	for slice := range s.Caches.Slices.All() {
		n := slice.Note.(sliceNote)
		all = append(all, inventory.Slice{
			Node: slice.Node, Driver: slice.Driver, Pool: slice.Pool, Name: slice.Name, Generation: slice.Generation, Count: slice.Count,
			Devices: slice.Devices, Sharing: n.sharing, Facts: n.facts, Taints: n.taints,
		})
	}
	return all
}

// listAllocations returns the devices that cached claims have.
func (s *source) listAllocations() []inventory.Allocation {
	var all []inventory.Allocation
	covers := s.coverageOfSlices()
	for observed := range s.Caches.Claims.All() {
		claim := observed.Decode()
		if claim.Status.Allocation == nil {
			continue
		}
		used, ours, pods := s.Preparer.IsPrepared(claim.UID), facts.ManagedBy(claim, facts.Manager), s.podNames(claim)
		failure := s.Preparer.FailureOf(claim.Status.ReservedFor)
		node := facts.NodeOf(claim)
		for i := range claim.Status.Allocation.Devices.Results {
			result := &claim.Status.Allocation.Devices.Results[i]
			allocation := inventory.AllocationOf(claim, result)
			has, written := &allocation.Claim, ours && facts.EntryOf(claim, facts.ResultID(result)) != nil
			has.Pods, has.Prepared = pods, used || written
			allocation.Node, allocation.Covered = node, covers(node, result, written)
			if !has.Prepared && has.Failure == "" {
				has.Failure = failure
			}
			all = append(all, allocation)
		}
	}
	return all
}

// coverageOfSlices returns a function that reports whether the cache of slices would have an
// allocated device if it were published: kwok-dra has prepared it, or a template publishes it. The
// cache has no slices of real drivers, and until it is complete it answers for none.
func (s *source) coverageOfSlices() func(node string, result *resourcev1.DeviceRequestAllocationResult, written bool) bool {
	set := s.Config.Current()
	if slices.ContainsFunc(s.Caches.Slices.Synced(), func(c cache.DoneChecker) bool { return !cache.IsDone(c) }) {
		return func(string, *resourcev1.DeviceRequestAllocationResult, bool) bool { return false }
	}
	realDrivers := map[string]plan.Driver{}
	return func(node string, result *resourcev1.DeviceRequestAllocationResult, written bool) bool {
		switch {
		case written:
			return true
		case set == nil || !set.HasDriver(result.Driver):
			return false
		case node == "":
			return set.SharedPool(result.Driver, result.Pool) != nil
		}
		if s.Kubelets == nil || !s.Kubelets.Enabled() {
			return s.Caches.Nodes.Has(node)
		}
		if _, known := realDrivers[node]; !known {
			realDrivers[node] = nil
			if fake := s.Caches.Nodes.Get(node); fake != nil {
				realDrivers[node] = s.Kubelets.Driver(nil, fake, set.HasDriver)
			}
		}
		return realDrivers[node] != nil && !realDrivers[node].Has(result.Driver)
	}
}

// podNames returns the names of the Pods that a claim is reserved for. Of a group of Pods, it knows
// those that use the claim and are bound.
func (s *source) podNames(claim *resourcev1.ResourceClaim) []string {
	var pods []*corev1.Pod
	var names []string
	for _, consumer := range claim.Status.ReservedFor {
		if facts.IsPod(consumer) {
			names = append(names, consumer.Name)
		} else if pods == nil {
			pods = s.Caches.Pods.Consumers(claim)
		}
	}
	for _, pod := range pods {
		if s.Caches.Nodes.Has(pod.Spec.NodeName) {
			names = append(names, pod.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
