package claims

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/pkg/claims/plan"
	"github.com/kwok-dra/kwok-dra/pkg/inventory"
)

// Allocations are the devices that claims have, by what the cache says.
func (c *Controller) Allocations() []inventory.Allocation {
	var all []inventory.Allocation
	for observed := range c.observer.caches.Claims.All() {
		claim := observed.Decode()
		if claim.Status.Allocation == nil {
			continue
		}
		used, ours, pods := c.observer.states.isPrepared(claim.UID), plan.ManagedBy(claim, plan.Manager), c.podNames(claim)
		for i := range claim.Status.Allocation.Devices.Results {
			result := &claim.Status.Allocation.Devices.Results[i]
			id := plan.ResultID(result)
			all = append(all, inventory.Allocation{Driver: id.Driver, Pool: id.Pool, Device: id.Device, Claim: inventory.Claim{
				Namespace:   claim.Namespace,
				Name:        claim.Name,
				Prepared:    used || ours && plan.EntryOf(claim, id) != nil,
				ShareID:     id.Share,
				AdminAccess: result.AdminAccess != nil && *result.AdminAccess,
				Pods:        pods,
			}})
		}
	}
	return all
}

// Changes counts what changes Allocations.
func (c *Controller) Changes() uint64 {
	return c.ledger.changes.Load()
}

// podNames are the names of the Pods that a claim is reserved for. Of a group of
// Pods, those that use the claim and are bound are known.
func (c *Controller) podNames(claim *resourcev1.ResourceClaim) []string {
	var pods []*corev1.Pod
	var names []string
	for _, consumer := range claim.Status.ReservedFor {
		if plan.IsPod(consumer) {
			names = append(names, consumer.Name)
		} else if pods == nil {
			pods = c.observer.fakeConsumers(claim)
		}
	}
	for _, pod := range pods {
		names = append(names, pod.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
