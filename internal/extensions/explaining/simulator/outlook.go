package simulator

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// Outlook is why a Pod fits on no node, by what is free now.
type Outlook struct {
	// Claims are the Pod's, also those that are still to be made for it.
	Claims []*resourcev1.ResourceClaim
	// Err is why the Pod fits nowhere, whatever the nodes have.
	Err error
	// Refusals are those of all nodes.
	Refusals []Refusal
	// Supplies are of the requests that get no devices.
	Supplies []Supply

	// nodes is how many nodes there are.
	nodes int
	// excluded are nodes that have the devices and may not have the Pod.
	excluded *Refusal
	// unselected says what the Pod selects nodes by that no node has, or is empty.
	unselected string
	priority   int32
}

// Outlook looks for a node for a Pod without giving it anything.
func (s *Scheduler) Outlook(ctx context.Context, pod *corev1.Pod) *Outlook {
	d, err := s.demandOf(pod)
	o := &Outlook{Claims: d.claims, Err: err, priority: priorityOf(pod)}
	if err != nil {
		return o
	}
	o.Refusals, o.nodes = s.Explain(ctx, pod), len(s.nodes)
	if slices.ContainsFunc(o.Refusals, func(r Refusal) bool { return r.Reason == notSelected }) {
		o.unselected = s.describeUnselected(pod)
	}
	k := s.kindOf(ctx, d)
	if k.supplies == nil {
		k.supplies = s.suppliesOf(ctx, d, o.Refusals)
		if len(k.supplies) > 0 && !o.Fits() {
			k.excluded = s.findExcludingNodes(ctx, d)
		}
	}
	o.excluded = k.excluded
	for _, supply := range k.supplies {
		supply.Claim = d.pending[supply.index].Name
		o.Supplies = append(o.Supplies, supply)
	}
	return o
}

// Fits reports whether a node has what the Pod asks for.
func (o *Outlook) Fits() bool {
	for i := range o.Refusals {
		if o.Refusals[i].fits {
			return true
		}
	}
	return false
}

// findExcludingNodes returns nodes that have the devices but do not admit the Pod, such as cordoned
// nodes: those with the most common reason. It tries as many nodes as the scheduler always does.
func (s *Scheduler) findExcludingNodes(ctx context.Context, d *demand) *Refusal {
	tried, known := 0, map[string]int{}
	var all []Refusal
	for _, n := range s.nodes {
		refusal, refused := d.refuseBeside(n, s.isLive)
		if devices, _ := n.reachableDevices(); !refused || len(devices) == 0 || d.hasClaimElsewhere(n.object) {
			continue
		}
		if found, err := s.hasDevices(ctx, n, d.pending); found && err == nil {
			all = appendRefusal(all, known, refusal, n.object.Name)
		}
		if tried++; tried == alwaysTried {
			break
		}
	}
	if len(all) == 0 {
		return nil
	}
	return &slices.SortedStableFunc(slices.Values(all), func(a, b Refusal) int { return cmp.Compare(len(b.Nodes), len(a.Nodes)) })[0]
}
