package stages

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// step is a write to a Pod or a claim in words: what it changed.
type step struct {
	object  string
	changes []string
}

// story reads from the audit log what was written to a namespace's Pods and
// claims, in the order in which the API server did it.
func story(h *harness.H, namespace string) []step {
	h.Helper()
	teller := &teller{pods: map[string]corev1.PodStatus{}, claims: map[string]resourcev1.ResourceClaimStatus{}}
	for _, event := range inOrderOfVersions(h.Audited(func(event *cluster.AuditEvent) bool {
		return event.ObjectRef.Namespace == namespace && event.ResponseStatus.Code < 300
	})) {
		teller.tell(event)
	}
	return teller.steps
}

// inOrderOfVersions orders events by when they were stored: the audit log has them in the order of their responses, which may
// overtake each other. A deletion, whose response has no version of its own, stays behind what comes before it in the log.
func inOrderOfVersions(events []cluster.AuditEvent) []cluster.AuditEvent {
	versions, latest := map[string]uint64{}, uint64(0)
	for _, event := range events {
		var object metav1.PartialObjectMetadata
		version := latest
		if event.Verb != "delete" && json.Unmarshal(event.ResponseObject, &object) == nil {
			if stored, err := strconv.ParseUint(object.ResourceVersion, 10, 64); err == nil {
				version = stored
			}
		}
		versions[event.AuditID] = version
		latest = max(latest, version)
	}
	slices.SortStableFunc(events, func(a, b cluster.AuditEvent) int { return cmp.Compare(versions[a.AuditID], versions[b.AuditID]) })
	return events
}

// TestInOrderOfVersions: of two responses, the one that overtakes the other in the log is later all the same.
func TestInOrderOfVersions(t *testing.T) {
	t.Parallel()
	event := func(id, verb, version string) cluster.AuditEvent {
		return cluster.AuditEvent{AuditID: id, Verb: verb, ResponseObject: json.RawMessage(fmt.Sprintf(`{"metadata": {"resourceVersion": %q}}`, version))}
	}
	var ids []string
	for _, ordered := range inOrderOfVersions([]cluster.AuditEvent{
		event("created", "create", "9"), event("ended", "patch", "12"), event("unprepared", "patch", "11"), event("deleted", "delete", "9"), event("finalized", "patch", "13"),
	}) {
		ids = append(ids, ordered.AuditID)
	}
	require.Equal(t, []string{"created", "unprepared", "ended", "deleted", "finalized"}, ids)
}

// teller tells of each write what it changed.
type teller struct {
	steps  []step
	pods   map[string]corev1.PodStatus
	claims map[string]resourcev1.ResourceClaimStatus
}

func (t *teller) tell(event cluster.AuditEvent) {
	switch event.ObjectRef.Resource + "/" + event.ObjectRef.Subresource + " " + event.Verb {
	case "pods/status patch", "pods/status update":
		var pod corev1.Pod
		if json.Unmarshal(event.ResponseObject, &pod) == nil {
			t.add("pod "+pod.Name, podChanges(t.pods[pod.Name], pod.Status))
			t.pods[pod.Name] = pod.Status
		}
	case "resourceclaims/status patch", "resourceclaims/status update":
		var claim resourcev1.ResourceClaim
		if json.Unmarshal(event.ResponseObject, &claim) == nil {
			t.add("claim", claimChanges(t.claims[claim.Name], claim.Status))
			t.claims[claim.Name] = claim.Status
		}
	case "resourceclaims/ create":
		t.add("claim", []string{"created"})
	case "resourceclaims/ delete":
		if _, known := t.claims[event.ObjectRef.Name]; !known {
			t.forgetUnused()
			return
		}
		t.add("claim", []string{"deleted"})
	case "pods/ delete":
		// The test's deletion only marks the Pod; KWOK's, with no grace, ends it.
		if !strings.HasPrefix(event.UserAgent, filepath.Base(os.Args[0])+"/") {
			t.add("pod "+event.ObjectRef.Name, []string{"deleted"})
		}
	}
}

// forgetUnused drops the creation of a claim that is deleted without having been
// used: the claim controller may make one more for a Pod that has just ended.
func (t *teller) forgetUnused() {
	for i, last := range slices.Backward(t.steps) {
		if last.object == "claim" && slices.Equal(last.changes, []string{"created"}) {
			t.steps = slices.Delete(t.steps, i, i+1)
			return
		}
	}
}

func (t *teller) add(object string, changes []string) {
	if len(changes) > 0 {
		slices.Sort(changes)
		t.steps = append(t.steps, step{object, changes})
	}
}

// podChanges leaves out conditions of the project's own, and what the scheduler and
// the binding say of PodScheduled. The kubelet's has an observed generation.
func podChanges(before, after corev1.PodStatus) []string {
	var changes []string
	changed := func(name string, differs bool) {
		if differs {
			changes = append(changes, name)
		}
	}
	changed("phase="+string(after.Phase), before.Phase != after.Phase && after.Phase != corev1.PodPending)
	changed("hostIP", before.HostIP != after.HostIP)
	changed("hostIPs", len(before.HostIPs) != len(after.HostIPs))
	changed("podIP", before.PodIP != after.PodIP)
	changed("startTime", fmt.Sprint(before.StartTime) != fmt.Sprint(after.StartTime))
	changed("observedGeneration", before.ObservedGeneration != after.ObservedGeneration)
	changed("resourceClaimStatuses", len(before.ResourceClaimStatuses) != len(after.ResourceClaimStatuses))
	for _, condition := range after.Conditions {
		notKubelets := condition.Type == corev1.PodScheduled && (condition.Status == corev1.ConditionFalse || condition.ObservedGeneration == 0)
		if notKubelets || strings.Contains(string(condition.Type), "kwok") {
			continue
		}
		text := strings.TrimSpace(fmt.Sprintf("%s=%s %s", condition.Type, condition.Status, condition.Reason))
		changed(text, !slices.ContainsFunc(before.Conditions, func(c corev1.PodCondition) bool {
			c.LastProbeTime, c.LastTransitionTime = condition.LastProbeTime, condition.LastTransitionTime
			return c == condition
		}))
	}
	for i, status := range after.ContainerStatuses {
		former := corev1.ContainerStatus{}
		if i < len(before.ContainerStatuses) {
			former = before.ContainerStatuses[i]
		}
		changed(status.Name+" "+stateOf(status), stateOf(former) != stateOf(status))
		changed(status.Name+" "+healthOf(status), healthOf(former) != healthOf(status))
		changed(status.Name+" "+mountsOf(status), mountsOf(former) != mountsOf(status))
		changed(status.Name+" "+resourcesOf(status), resourcesOf(former) != resourcesOf(status))
	}
	return changes
}

func stateOf(status corev1.ContainerStatus) string {
	switch state := status.State; {
	case state.Waiting != nil:
		return "waiting " + state.Waiting.Reason
	case state.Running != nil:
		return "running"
	case state.Terminated != nil:
		return fmt.Sprintf("terminated %d", state.Terminated.ExitCode)
	}
	return ""
}

func healthOf(status corev1.ContainerStatus) string {
	var health []string
	for _, resource := range status.AllocatedResourcesStatus {
		for _, device := range resource.Resources {
			health = append(health, fmt.Sprintf("%s %s %s", resource.Name, device.ResourceID, device.Health))
		}
	}
	return strings.Join(health, ", ")
}

func mountsOf(status corev1.ContainerStatus) string {
	var mounts []string
	for _, mount := range status.VolumeMounts {
		text := fmt.Sprintf("mounts %s at %s", mount.Name, mount.MountPath)
		if mount.ReadOnly {
			text += fmt.Sprintf(" read-only, recursively %s", *mount.RecursiveReadOnly)
		}
		mounts = append(mounts, text)
	}
	return strings.Join(mounts, ", ")
}

func resourcesOf(status corev1.ContainerStatus) string {
	if status.Resources == nil {
		return ""
	}
	encoded, err := json.Marshal(status.Resources)
	if err != nil {
		return err.Error()
	}
	return "resources " + string(encoded)
}

func claimChanges(before, after resourcev1.ResourceClaimStatus) []string {
	var changes []string
	if (before.Allocation == nil) != (after.Allocation == nil) {
		changes = append(changes, map[bool]string{true: "allocated", false: "deallocated"}[after.Allocation != nil])
	}
	if len(before.ReservedFor) != len(after.ReservedFor) {
		changes = append(changes, fmt.Sprintf("reserved for %d", len(after.ReservedFor)))
	}
	if len(before.Devices) == len(after.Devices) {
		return changes
	}
	if len(after.Devices) == 0 {
		return append(changes, "devices gone")
	}
	for _, device := range after.Devices {
		text := fmt.Sprintf("device of %s in pool %s", device.Driver, device.Pool)
		if device.Data != nil {
			text += " data " + string(device.Data.Raw)
		}
		for _, condition := range device.Conditions {
			text += " " + condition.Type
		}
		changes = append(changes, text)
	}
	return changes
}

// requireStory wants the steps in their order, and waits for the last ones: the audit log has a
// write a moment after others see what it has changed.
func requireStory(h *harness.H, namespace string, want ...step) {
	h.Helper()
	h.Eventually(harness.Patience, func() string { return differs(story(h, namespace), want) })
}

// differs tells in what steps are others than wanted. What a kubelet writes at once may be written in
// several writes, one after the other.
func differs(got, want []step) string {
	rest := got
	for _, expected := range want {
		slices.Sort(expected.changes)
		var changes []string
		for len(rest) > 0 && rest[0].object == expected.object && containsAll(expected.changes, rest[0].changes) && len(changes) < len(expected.changes) {
			changes = append(changes, rest[0].changes...)
			rest = rest[1:]
		}
		slices.Sort(changes)
		if !slices.Equal(expected.changes, changes) {
			return fmt.Sprintf("a step of %s is %q, want %q:\n%s", expected.object, changes, expected.changes, tell(got))
		}
	}
	if len(rest) > 0 {
		return fmt.Sprintf("there are %d more steps than wanted:\n%s", len(rest), tell(got))
	}
	return ""
}

func containsAll(all, some []string) bool {
	return !slices.ContainsFunc(some, func(text string) bool { return !slices.Contains(all, text) })
}

func tell(steps []step) string {
	var text strings.Builder
	for _, step := range steps {
		fmt.Fprintf(&text, "%s: %s\n", step.object, strings.Join(step.changes, "; "))
	}
	return text.String()
}
