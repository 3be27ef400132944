package usage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/dractl/clusterdevices"
	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/history"
	"github.com/kwok-dra/kwok-dra/internal/extensions/util/natural"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// Claim is what a claim has, and for whom.
type Claim struct {
	Namespace string `json:"namespace"`
	Name      string `json:"claim"`
	State     State  `json:"state"`
	// Since is when the state began, if that is known.
	Since *time.Time `json:"since,omitempty"`
	Node  string     `json:"node,omitempty"`
	// Pods are those that the claim is reserved for, or that wait for it.
	Pods    []string  `json:"pods"`
	Devices []*Device `json:"devices"`
	Reason  string    `json:"reason,omitempty"`
}

// ResourceName is kubectl's name of the claim.
func (c *Claim) ResourceName() string { return "resourceclaim.resource.k8s.io/" + c.Name }

// ListClaims returns all claims.
func (c *Cluster) ListClaims() []*Claim {
	all := make([]*Claim, len(c.Claims))
	for i, claim := range c.Claims {
		all[i] = c.DescribeClaim(claim)
	}
	slices.SortFunc(all, func(a, b *Claim) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), natural.Compare(a.Name, b.Name))
	})
	return all
}

// DescribeClaim describes a claim.
func (c *Cluster) DescribeClaim(claim *resourcev1.ResourceClaim) *Claim {
	described := &Claim{Namespace: claim.Namespace, Name: claim.Name, Node: facts.NodeOf(claim), Pods: []string{}, Devices: []*Device{}}
	if claim.Status.Allocation != nil {
		for i := range claim.Status.Allocation.Devices.Results {
			described.Devices = append(described.Devices, c.describeDevice(&claim.Status.Allocation.Devices.Results[i]))
		}
	}
	described.Pods = append(described.Pods, clusterdevices.ConsumingPods(claim)...)
	found := c.claimStatus(claim)
	if len(described.Pods) == 0 {
		for _, pod := range c.users[types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}] {
			if !facts.IsTerminal(pod) {
				described.Pods = append(described.Pods, pod.Name)
			}
		}
		slices.SortFunc(described.Pods, natural.Compare)
	}
	if found.state == Unused && len(described.Pods) > 0 {
		found.state, found.reason = Waiting, ""
	}
	described.State, described.Since, described.Reason = found.state, found.since, found.reason
	return described
}

// claimStatus is the status of a claim, which is the worst of its devices for its Pods.
func (c *Cluster) claimStatus(claim *resourcev1.ResourceClaim) status {
	if claim.DeletionTimestamp != nil {
		reason := "waits for finalizers " + strings.Join(claim.Finalizers, ", ")
		if pods := clusterdevices.ConsumingPods(claim); len(pods) > 0 {
			reason += ", while it is reserved for " + strings.Join(pods, ", ")
		}
		return status{Ending, deletionTime(&claim.ObjectMeta), reason}
	}
	if claim.Status.Allocation == nil {
		return status{Unused, timeOrNil(&claim.CreationTimestamp), "no Pod names the claim"}
	}
	allocated := timeOrNil(history.AllocationTime(claim))
	if len(claim.Status.ReservedFor) == 0 {
		return c.worseOfDevices(claim, status{Idle, allocated, "no Pod uses the claim"})
	}
	worst := status{Unused, nil, ""}
	for _, consumer := range claim.Status.ReservedFor {
		worst = worseOf(worst, c.consumerStatus(claim, consumer, allocated))
	}
	if worst.state == Failing {
		return worst // it says more than that a device is gone
	}
	return c.worseOfDevices(claim, worst)
}

// consumerStatus is the worst status of the devices of a claim for one that it is reserved for.
func (c *Cluster) consumerStatus(claim *resourcev1.ResourceClaim, consumer resourcev1.ResourceClaimConsumerReference, allocated *time.Time) status {
	if !facts.IsPod(consumer) {
		return status{Allocated, allocated, fmt.Sprintf("for %s/%s", consumer.Resource, consumer.Name)}
	}
	pod := c.pods[types.NamespacedName{Namespace: claim.Namespace, Name: consumer.Name}]
	switch {
	case pod == nil && c.IsWithoutPods:
		return status{Allocated, allocated, ""}
	case pod == nil || pod.UID != consumer.UID:
		return status{Idle, nil, "reserved for Pod " + consumer.Name + ", which is gone"}
	}
	worst := status{Unused, nil, ""}
	for i := range claim.Status.Allocation.Devices.Results {
		worst = worseOf(worst, c.statusOf(pod, clusterdevices.PodClaimOf(pod, claim), claim, &claim.Status.Allocation.Devices.Results[i]))
	}
	return worst
}

// worseOfDevices is a status, or that of a device that is worse whoever has it.
func (c *Cluster) worseOfDevices(claim *resourcev1.ResourceClaim, found status) status {
	for i := range claim.Status.Allocation.Devices.Results {
		found = worseOf(found, c.problemOf(facts.NodeOf(claim), &claim.Status.Allocation.Devices.Results[i]))
	}
	return found
}

func worseOf(a, b status) status {
	if slices.Index(States, b.state) > slices.Index(States, a.state) {
		return b
	}
	return a
}
