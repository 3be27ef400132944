package claims

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/pkg/inventory"
)

// Allocations are the devices that claims have, by what the cache says.
func (p *Preparer) Allocations() []inventory.Allocation {
	var all []inventory.Allocation
	for _, object := range p.claims.GetStore().List() {
		claim := object.(*observedClaim).Decode()
		if claim.Status.Allocation == nil {
			continue
		}
		used, ours, pods := p.states.isPrepared(claim.UID), managedBy(claim, fieldManager), p.podNames(claim)
		for i := range claim.Status.Allocation.Devices.Results {
			result := &claim.Status.Allocation.Devices.Results[i]
			id := resultID(result)
			all = append(all, inventory.Allocation{Driver: id.driver, Pool: id.pool, Device: id.device, Claim: inventory.Claim{
				Namespace:   claim.Namespace,
				Name:        claim.Name,
				Prepared:    used || ours && entryOf(claim, id) != nil,
				ShareID:     id.share,
				AdminAccess: result.AdminAccess != nil && *result.AdminAccess,
				Pods:        pods,
			}})
		}
	}
	return all
}

// Changes counts what changes Allocations.
func (p *Preparer) Changes() uint64 {
	return p.changes.Load()
}

// podNames are the names of the Pods that a claim is reserved for. Of a group of
// Pods, those that use the claim and are bound are known.
func (p *Preparer) podNames(claim *resourcev1.ResourceClaim) []string {
	var pods []*corev1.Pod
	var names []string
	for _, consumer := range claim.Status.ReservedFor {
		if isPod(consumer) {
			names = append(names, consumer.Name)
		} else if pods == nil {
			pods = p.consumers(claim)
		}
	}
	for _, pod := range pods {
		names = append(names, pod.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
