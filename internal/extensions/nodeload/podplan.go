package nodeload

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/observe/cached"
)

const (
	// writesUntilRunning is how often a kubelet writes the status of a Pod until it runs: it waits, it has a sandbox, it
	// runs. writesUntilEnded is how often it does so at the end: the containers have ended, the Pod has.
	writesUntilRunning = 3
	writesUntilEnded   = 2

	// tokenDelay and claimDelay are the recorded times between the first write of a Pod's status and the request for a token,
	// and for its claims.
	tokenDelay = 160 * time.Millisecond
	claimDelay = 290 * time.Millisecond
)

// podRecord is what has been sent for a Pod.
type podRecord struct {
	version string
	status  uint64
	phase   podPhase
	// isPlayed says that the Pod has been seen before it ran: a kubelet that starts sends little for running Pods.
	isPlayed bool
	// started and ended count the writes of the status until the Pod runs, and from then on.
	started, ended int
}

// step is something to send for a Pod.
type step struct {
	after time.Duration
	// request is nil if claims are to be prepared.
	request *request
	claims  []types.NamespacedName
	// isNeeded says that a kubelet starts no containers before it succeeds.
	isNeeded bool
}

// planPod returns what a kubelet sends once it sees the new state of a Pod. The kubelet reads a Pod before each write of its
// status. If kwok or kwok-dra has written, only the read is missing; for a write that they save, both are.
func planPod(record podRecord, pod *podView, now time.Time) (podRecord, []step) {
	switch {
	case record.version == "":
		record = podRecord{version: pod.ResourceVersion, status: pod.status, phase: pod.phase, isPlayed: pod.phase == podPending}
		return record, planNewPod(pod)
	case record.version == pod.ResourceVersion || cached.Older(pod.ResourceVersion, record.version):
		return record, nil
	case !record.isPlayed:
		record.version, record.phase = pod.ResourceVersion, pod.phase
		return record, nil
	}
	isWritten, before := record.status != pod.status, record.phase
	record.version, record.status, record.phase = pod.ResourceVersion, pod.status, pod.phase
	var requests []*request
	if before == podPending {
		requests = planStart(&record, pod, isWritten, now)
	} else {
		requests = planEnd(&record, pod, isWritten, before, now)
	}
	var steps []step
	for _, r := range requests {
		steps = append(steps, step{request: r})
	}
	return record, steps
}

// planNewPod returns what a kubelet sends for a Pod that it has not seen before.
func planNewPod(pod *podView) (steps []step) {
	if pod.phase == podPending {
		steps = append(steps, step{request: getPod(pod)})
	}
	if pod.phase == podPending || pod.phase == podRunning {
		for _, audience := range pod.audiences {
			steps = append(steps, step{after: tokenDelay, request: createToken(pod, audience), isNeeded: true})
		}
	}
	if pod.phase == podPending && len(pod.claims) > 0 {
		steps = append(steps, step{after: claimDelay, claims: pod.claims, isNeeded: true})
	}
	return steps
}

// planStart returns the requests of a Pod that was pending.
func planStart(record *podRecord, pod *podView, isWritten bool, now time.Time) (requests []*request) {
	if isWritten {
		if record.started++; record.started > 1 && record.started <= writesUntilRunning { // the first was read for at once
			requests = append(requests, getPod(pod))
		}
	}
	if pod.phase != podRunning {
		return requests
	}
	for ; record.started < writesUntilRunning; record.started++ {
		if record.started > 0 {
			requests = append(requests, getPod(pod))
		}
		requests = append(requests, patchPodStatus(pod, record.started+1, now))
	}
	return append(requests, planContainerEvents(pod, now)...)
}

// planEnd returns the requests of a Pod that has run.
func planEnd(record *podRecord, pod *podView, isWritten bool, before podPhase, now time.Time) (requests []*request) {
	if pod.phase == podDeleting && before != podDeleting {
		requests = append(requests, getPod(pod)) // that before the deletion, which is kwok's; afterwards the node may not read the Pod
		for _, container := range pod.containers {
			requests = append(requests, containerEvent(pod, container.name, "Killing", "Stopping container "+container.name, now))
		}
	}
	if isWritten && record.ended < writesUntilEnded {
		record.ended++
		requests = append(requests, getPod(pod))
	}
	if pod.phase == podTerminal && before != podTerminal && record.ended < writesUntilEnded {
		record.ended++
		requests = append(requests, getPod(pod), patchPodStatus(pod, writesUntilRunning+record.ended, now))
	}
	return requests
}

// planContainerEvents returns the events of containers that start.
func planContainerEvents(pod *podView, now time.Time) (requests []*request) {
	for _, container := range pod.containers {
		add := func(reason, message string) {
			requests = append(requests, containerEvent(pod, container.name, reason, message, now))
		}
		if container.isPulled {
			add("Pulling", "Pulling image")
			add("Pulled", "Successfully pulled image")
		} else {
			add("Pulled", "Container image already present on machine")
		}
		add("Created", "Container created")
		add("Started", "Container started")
	}
	return requests
}

func containerEvent(pod *podView, container, reason, message string, now time.Time) *request {
	about := corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		FieldPath: "spec.containers{" + container + "}",
	}
	return createEvent(pod.node, about, reason, message, now)
}

// planPrepare returns the reads of drivers that prepare claims, by driver: one for each claim. The kubelet does not call the
// drivers of claims that it has prepared for another Pod.
func planPrepare(claims []*resourcev1.ResourceClaim, isPrepared func(types.UID) bool, isOurs func(*resourcev1.DeviceRequestAllocationResult) bool) map[string][]*request {
	reads := map[string][]*request{}
	for _, claim := range claims {
		if claim.Status.Allocation == nil || isPrepared(claim.UID) {
			continue
		}
		var drivers []string
		for i := range claim.Status.Allocation.Devices.Results {
			result := &claim.Status.Allocation.Devices.Results[i]
			if isOurs(result) && !slices.Contains(drivers, result.Driver) {
				drivers = append(drivers, result.Driver)
			}
		}
		for _, driver := range drivers {
			reads[driver] = append(reads[driver], getClaim(types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}))
		}
	}
	return reads
}
