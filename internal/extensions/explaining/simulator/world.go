package simulator

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
)

// World is the state in which Pods are scheduled.
type World struct {
	Nodes          []*corev1.Node
	Slices         []*resourcev1.ResourceSlice
	Classes        []*resourcev1.DeviceClass
	Claims         []*resourcev1.ResourceClaim
	ClaimTemplates []*resourcev1.ResourceClaimTemplate
	TaintRules     []*resourcev1.DeviceTaintRule
	// Namespaces are those whose labels are known: whether they permit admin access, and which terms of affinity select them.
	Namespaces []*corev1.Namespace
	// IsLive says that the nodes are those of a cluster: one without allocatable resources takes no Pods.
	IsLive bool
	// Unseen says what could not be read, if anything.
	Unseen string
	// LacksPods says that the Pods that are bound are not known.
	LacksPods bool
	// Pods are those that are bound.
	Pods []*corev1.Pod
}

// poolID identifies a pool, as the allocator does.
type poolID struct{ driver, name string }

// publications finds the slices that matter on a node.
type publications struct {
	own    map[string][]poolID
	shared []poolID
	rules  []inventory.TaintRule
	slices map[poolID][]*resourcev1.ResourceSlice
}

func newPublications(slices []*resourcev1.ResourceSlice, rules []*resourcev1.DeviceTaintRule) *publications {
	p := &publications{own: map[string][]poolID{}, slices: map[poolID][]*resourcev1.ResourceSlice{}}
	for _, rule := range rules {
		p.rules = append(p.rules, inventory.TaintRuleOf(rule))
	}
	for _, slice := range slices {
		id := poolID{slice.Spec.Driver, slice.Spec.Pool.Name}
		p.slices[id] = append(p.slices[id], p.addRuleTaints(slice, rules))
		if slice.Spec.NodeName != nil && *slice.Spec.NodeName != "" {
			p.own[*slice.Spec.NodeName] = append(p.own[*slice.Spec.NodeName], id)
		} else {
			p.shared = append(p.shared, id)
		}
	}
	return p
}

// slicesFor returns the slices of all pools that have a slice of the node, or of no node in
// particular: the allocator compares the slices of a pool. All slices of the cluster would give the
// same result, but slowly.
func (p *publications) slicesFor(node string) []*resourcev1.ResourceSlice {
	var all []*resourcev1.ResourceSlice
	seen := map[poolID]bool{}
	for _, ids := range [][]poolID{p.own[node], p.shared} {
		for _, id := range ids {
			if !seen[id] {
				seen[id] = true
				all = append(all, p.slices[id]...)
			}
		}
	}
	return all
}

// addRuleTaints adds the taints of DeviceTaintRules to the devices of a slice.
func (p *publications) addRuleTaints(slice *resourcev1.ResourceSlice, rules []*resourcev1.DeviceTaintRule) *resourcev1.ResourceSlice {
	tainted := slice
	for r, rule := range rules {
		for i := range slice.Spec.Devices {
			if !p.rules[r].Selects(slice.Spec.Driver, slice.Spec.Pool.Name, slice.Spec.Devices[i].Name) {
				continue
			}
			if tainted == slice {
				tainted = slice.DeepCopy()
			}
			tainted.Spec.Devices[i].Taints = append(tainted.Spec.Devices[i].Taints, rule.Spec.Taint)
		}
	}
	return tainted
}
