package claims

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// actsFor reports whether this replica acts for a Pod with those claims: for one
// with a claim that Pods on several nodes can use the leader acts, for others the
// replica that acts for the node. So only one replica writes to a claim.
func (p *Preparer) actsFor(node *corev1.Node, claims []*resourcev1.ResourceClaim) bool {
	if slices.ContainsFunc(claims, ofSeveralNodes) {
		return p.owner.Leads()
	}
	return p.owner.Acts(node.Name, true)
}

func ofSeveralNodes(claim *resourcev1.ResourceClaim) bool {
	return claim.Status.Allocation != nil && nodeOf(claim) == ""
}

// follow notes what another replica has done for a Pod.
func (p *Preparer) follow(a *attempt, claims []*resourcev1.ResourceClaim) {
	if !terminal(a.pod) && readyToStart(a.pod) == corev1.ConditionTrue {
		p.use(a, claims)
		return
	}
	p.release(a.state)
}

// take queues the Pods and claims of a node that this replica begins to act for,
// including claims that no Pod uses.
func (p *Preparer) take(node string) {
	p.enqueueNode(node)
	claims, err := p.claims.GetTypedIndexer().ByTypedIndex(byNode, node)
	if err != nil {
		panic(fmt.Sprintf("list claims by node: %v", err)) // there is no such index
	}
	for _, claim := range claims {
		p.claimChanged(claim)
	}
}

// enqueueNode queues the Pods of a node, and their claims.
func (p *Preparer) enqueueNode(name string) {
	for _, observed := range p.observedBy(byNode, name) {
		p.podChanged(observed)
		p.enqueueClaims(observed)
	}
}
