package faults

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// wrongPods says which Pods are not told to start that are to be, or to wait, and the other
// way round. While it is not certain what is in force, none is to be.
func (s *state) wrongPods() []string {
	pools := s.wantedPools()
	var wrong []string
	for _, pod := range s.pods {
		switch start := startable(pod); {
		case start && pod.Spec.NodeName == "":
			wrong = append(wrong, fmt.Sprintf("pods: pod %s is told to start and is not bound", pod.Name))
		case start || len(s.others) > 0:
		case s.mustStart(pod, pools):
			wrong = append(wrong, fmt.Sprintf("pods: pod %s on %s is not told to start", pod.Name, pod.Spec.NodeName))
		case s.untold(pod):
			wrong = append(wrong, fmt.Sprintf("pods: pod %s on %s is not told to wait", pod.Name, pod.Spec.NodeName))
		}
	}
	slices.Sort(wrong)
	return wrong
}

func hasLeft(node *corev1.Node) bool { return node.Annotations[leftAnnotation] != "" }

func startable(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReadyToStartContainers && c.Status == corev1.ConditionTrue
	})
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// mustStart reports whether nothing keeps the claims of a Pod from being prepared.
// Where something does, it may all the same have started before.
func (s *state) mustStart(pod *corev1.Pod, pools map[poolKey]wantedPool) bool {
	if !s.waiting(pod) {
		return false
	}
	node := s.node(pod.Spec.NodeName)
	for i := range pod.Spec.ResourceClaims {
		claim := s.claimOf(pod, &pod.Spec.ResourceClaims[i])
		if claim == nil || claim.Status.Allocation == nil || !resourceclaim.IsReservedForPod(pod, claim, true) {
			return false
		}
		for _, result := range claim.Status.Allocation.Devices.Results {
			if !s.allocatable(node, &result, pools) {
				return false
			}
		}
	}
	return true
}

func (s *state) allocatable(node *corev1.Node, result *resourcev1.DeviceRequestAllocationResult, pools map[poolKey]wantedPool) bool {
	for _, holder := range []string{node.Name, ""} {
		pool, ok := pools[poolKey{holder, result.Driver, result.Pool}]
		if !ok || pool.unsure {
			continue
		}
		// A node that does not have the shared pool's template does not have its driver.
		if _, has := pool.devices[result.Device]; has && (holder != "" || s.shares(node, result.Pool)) {
			return true
		}
	}
	return false
}

// shares reports whether a node has the template of a pool that nodes share.
func (f *inForce) shares(node *corev1.Node, pool string) bool {
	for _, t := range f.templates {
		if t.shared && t.poolName() == pool {
			return slices.Contains(t.kinds, node.Labels[kindLabel])
		}
	}
	return false
}

func (f *found) claimOf(pod *corev1.Pod, podClaim *corev1.PodResourceClaim) *resourcev1.ResourceClaim {
	name := podClaim.ResourceClaimName
	for i := range pod.Status.ResourceClaimStatuses {
		if status := &pod.Status.ResourceClaimStatuses[i]; status.Name == podClaim.Name {
			name = status.ResourceClaimName
		}
	}
	if name == nil {
		return nil
	}
	i := slices.IndexFunc(f.claims, func(c resourcev1.ResourceClaim) bool { return c.Name == *name })
	if i < 0 {
		return nil
	}
	return &f.claims[i]
}

// wrongClaims says which claims lack entries, or have some that they are not to
// have.
func (s *state) wrongClaims() []string {
	var wrong []string
	for i := range s.claims {
		if problem := s.wrongClaim(&s.claims[i]); problem != "" {
			wrong = append(wrong, fmt.Sprintf("claims: claim %s: %s", s.claims[i].Name, problem))
		}
	}
	slices.Sort(wrong)
	return wrong
}

func (s *state) wrongClaim(claim *resourcev1.ResourceClaim) string {
	var started, living bool
	var nodes []string
	for _, consumer := range claim.Status.ReservedFor {
		pod := s.pods[consumer.UID]
		if pod == nil || ended(pod) {
			continue
		}
		node := s.node(pod.Spec.NodeName)
		// An unbound Pod may be about to start, and where its node has come again since
		// it started, or was not selected, the entries may have been withdrawn in between.
		living = living || node != nil || pod.Spec.NodeName == "" || s.forgotten(pod.Spec.NodeName) || s.unknown(pod.Spec.NodeName) || s.usedElsewhere(claim, pod)
		started = started || node != nil && startable(pod) && !hasLeft(node) && node.CreationTimestamp.Time.Before(pod.CreationTimestamp.Time)
		nodes = append(nodes, pod.Spec.NodeName)
	}
	entries := claim.Status.Devices
	switch {
	case !living && len(entries) > 0:
		return fmt.Sprintf("has %d entries, and no Pod that uses it", len(entries))
	case claim.Status.Allocation == nil || !started && len(entries) == 0:
		return ""
	case len(entries) != len(claim.Status.Allocation.Devices.Results):
		return fmt.Sprintf("has %d entries for %d devices", len(entries), len(claim.Status.Allocation.Devices.Results))
	case !started && facts.NodeOf(claim) == "": // what was reported for another node stays until a Pod starts
		return ""
	}
	for _, result := range claim.Status.Allocation.Devices.Results {
		if problem := s.wrongEntry(entries, &result, nodes); problem != "" {
			return problem
		}
	}
	return ""
}

// rest is how long all is to be right before it counts as settled. Entries that no Pod uses,
// and that may stay all the same, may be withdrawn as late as others.
func (s *state) rest() time.Duration {
	for i := range s.claims {
		if claim := &s.claims[i]; len(claim.Status.Devices) > 0 && !slices.ContainsFunc(claim.Status.ReservedFor, s.uses) {
			return plan.OthersDelay + quiet
		}
	}
	return quiet
}

// uses reports whether a consumer is a Pod that has not ended, on a node that the sidecars
// act for.
func (s *state) uses(consumer resourcev1.ResourceClaimConsumerReference) bool {
	pod := s.pods[consumer.UID]
	return pod != nil && !ended(pod) && s.node(pod.Spec.NodeName) != nil
}

// usedElsewhere reports whether a Pod that uses a claim may be another kwok-dra's: the claim is
// usable on several nodes, and the Pod's is none of those that are asked for.
func (s *state) usedElsewhere(claim *resourcev1.ResourceClaim, pod *corev1.Pod) bool {
	node := pod.Spec.NodeName
	return s.node(node) == nil && s.selection.hides(node) && claim.Status.Allocation != nil && claim.Status.Allocation.NodeSelector == nil
}

// sharedByAll reports whether the sidecars act for each of the nodes, and each has the
// template of a pool that is shared. If not, what was reported for another node stays, and so
// it does where the template has gone: a pool that is not shared has the name of its node.
func (s *state) sharedByAll(pool string, nodes []string) bool {
	t, inForce := s.templates[pool]
	if !inForce {
		return slices.Contains(nodes, pool)
	}
	return !t.shared || !slices.ContainsFunc(nodes, func(name string) bool {
		node := s.node(name)
		return node == nil || !slices.Contains(t.kinds, node.Labels[kindLabel])
	})
}

func (s *state) wrongEntry(entries []resourcev1.AllocatedDeviceStatus, result *resourcev1.DeviceRequestAllocationResult, nodes []string) string {
	i := slices.IndexFunc(entries, func(e resourcev1.AllocatedDeviceStatus) bool {
		return e.Driver == result.Driver && e.Pool == result.Pool && e.Device == result.Device
	})
	if i < 0 {
		return "has no entry for device " + result.Device
	}
	var data struct{ Node, Device string }
	if entries[i].Data == nil || json.Unmarshal(entries[i].Data.Raw, &data) != nil || data.Device != result.Device || !slices.Contains(nodes, data.Node) && s.sharedByAll(result.Pool, nodes) {
		return fmt.Sprintf("has for device %s the data %+v, and is used on %s", result.Device, data, nodes)
	}
	conditions := entries[i].Conditions
	if len(conditions) != 1 || conditions[0].Type != "Ready" || conditions[0].Status != metav1.ConditionTrue {
		return fmt.Sprintf("has for device %s the conditions %+v", result.Device, conditions)
	}
	return ""
}

// wrong is all that is not as the oracle says.
func (s *state) wrong() []string {
	return slices.Concat(s.wrongPools(), s.wrongPods(), s.wrongClaims(), s.wrongWaits())
}
