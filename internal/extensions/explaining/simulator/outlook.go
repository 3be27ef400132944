package simulator

import (
	"context"

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
	// excluded is a node that has what the Pod asks for, and may not have the Pod.
	excluded *Refusal
}

// Outlook looks for a node for a Pod without giving it anything.
func (s *Scheduler) Outlook(ctx context.Context, pod *corev1.Pod) *Outlook {
	d, err := s.demandOf(pod)
	o := &Outlook{Claims: d.claims, Err: err}
	if err != nil {
		return o
	}
	o.Refusals, o.nodes = s.Explain(ctx, pod), len(s.nodes)
	k := s.kindOf(ctx, d)
	if k.supplies == nil {
		k.supplies = s.suppliesOf(ctx, d, o.Refusals)
		if len(k.supplies) > 0 && !o.Fits() {
			k.excluded = s.findExcludingNode(ctx, d)
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

// findExcludingNode returns the first node that has what the Pod asks for but does not admit the
// Pod, such as a cordoned node. It tries as many nodes as the scheduler always does.
func (s *Scheduler) findExcludingNode(ctx context.Context, d *demand) *Refusal {
	tried := 0
	for _, n := range s.nodes {
		reason := d.whyUnfit(n.object)
		if devices, _ := n.reachableDevices(); reason == "" || len(devices) == 0 || d.hasClaimElsewhere(n.object) {
			continue
		}
		if found, err := s.hasDevices(ctx, n, d.pending); found && err == nil {
			return &Refusal{Nodes: []string{n.object.Name}, Reason: reason}
		}
		if tried++; tried == alwaysTried {
			return nil
		}
	}
	return nil
}
