package plan

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/resource"

	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// The reasons of pkg/kubelet/status/generate.go and kubelet_pods.go.
const (
	containersNotReady       = "ContainersNotReady"
	containersNotInitialized = "ContainersNotInitialized"
	containerCreating        = "ContainerCreating"
	podInitializing          = "PodInitializing"
)

// Patch is a patch of a Pod's status.
type Patch struct {
	// Operation is one of the Patch constants.
	Operation string
	Type      types.PatchType
	// Content is encoded as JSON.
	Content any
}

// The operations of patches, as kwok_dra_pod_writes_total has them.
const (
	PatchWaiting    = "waiting"
	PatchReady      = "ready"
	PatchUnprepared = "unprepared"
	PatchHealth     = "health"
)

// statusPatch is a strategic merge patch of a Pod's status like the kubelet's. The UID protects another
// Pod of the same name. The resource version, if set, protects what others have written since: unlike
// below a kubelet, kwok and for a moment another replica write the Pod too.
type statusPatch struct {
	Metadata struct {
		UID             types.UID `json:"uid"`
		ResourceVersion string    `json:"resourceVersion,omitempty"`
	} `json:"metadata"`
	Status corev1.PodStatus `json:"status"`
}

// newStatusPatch completes the conditions of a status and makes a patch of it. The transition time of a condition is now,
// unless the Pod has the condition with that status already.
func newStatusPatch(pod *corev1.Pod, operation string, status corev1.PodStatus, now time.Time) *Patch {
	for i := range status.Conditions {
		condition := &status.Conditions[i]
		condition.ObservedGeneration, condition.LastTransitionTime = pod.Generation, metav1.Time{Time: now}
		if former := facts.PodCondition(pod, condition.Type); former.Status == condition.Status {
			condition.LastTransitionTime = former.LastTransitionTime
		}
	}
	patch := statusPatch{Status: status}
	patch.Metadata.UID = pod.UID
	if status.Phase != "" || status.ContainerStatuses != nil { // the Pod may be running by now
		patch.Metadata.ResourceVersion = pod.ResourceVersion
	}
	return &Patch{operation, types.StrategicMergePatchType, patch}
}

// startStatus is a status with nothing but PodReadyToStartContainers.
func startStatus(ready corev1.ConditionStatus) corev1.PodStatus {
	return corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: ready}}}
}

// lacksWaitingStatus reports whether a Pod does not show yet that it waits for its claims. A Pod whose containers run
// without having waited never does.
func (v *PodView) lacksWaitingStatus() bool {
	phase := v.Pod.Status.Phase
	return facts.ReadyToStart(v.Pod) == "" && (phase == corev1.PodPending || phase == "")
}

// waitingPatch gives a Pod the status of a Pod that waits for its claims. It is nil if the Pod does not lack that status.
func (v *PodView) waitingPatch(now time.Time) *Patch {
	if !v.lacksWaitingStatus() {
		return nil
	}
	return newStatusPatch(v.Pod, PatchWaiting, waitingStatus(v.Pod, v.Node, now), now)
}

// waitingStatus is the status that a kubelet gives a Pod whose claims are not prepared yet.
func waitingStatus(pod *corev1.Pod, node *corev1.Node, now time.Time) corev1.PodStatus {
	reason, initialized := containerCreating, corev1.PodCondition{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}
	if incomplete := containerNames(pod.Spec.InitContainers); len(incomplete) > 0 {
		reason, initialized.Status, initialized.Reason = podInitializing, corev1.ConditionFalse, containersNotInitialized
		initialized.Message = fmt.Sprintf("containers with incomplete status: %s", incomplete)
	}
	sidecars := slices.DeleteFunc(slices.Clone(pod.Spec.InitContainers), func(container corev1.Container) bool { // which count for readiness
		return container.RestartPolicy == nil || *container.RestartPolicy != corev1.ContainerRestartPolicyAlways
	})
	unready := fmt.Sprintf("containers with unready status: %s", containerNames(append(sidecars, pod.Spec.Containers...)))
	conditions := []corev1.PodCondition{
		{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse},
		initialized,
		{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: containersNotReady, Message: unready},
		{Type: corev1.ContainersReady, Status: corev1.ConditionFalse, Reason: containersNotReady, Message: unready},
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
	}
	// The resources of a whole Pod as the kubelet reports them before it reads cgroups (getEffectiveAllocatedResources in
	// kubelet_pods.go). API servers before 1.36 drop them.
	resources := &corev1.ResourceRequirements{}
	if pod.Spec.Resources != nil {
		resources = pod.Spec.Resources.DeepCopy()
	}
	options := resource.PodResourcesOptions{UseDRANodeAllocatableResourceClaimStatus: true}
	resources.Requests, resources.Limits = resource.PodRequests(pod, options), resource.PodLimits(pod, options)
	// The node's first address, internal before external ones, and the first of the other family (GetNodeHostIPs in
	// pkg/util/node). The API server accepts no more.
	var hostIPs []corev1.HostIP
	for _, kind := range []corev1.NodeAddressType{corev1.NodeInternalIP, corev1.NodeExternalIP} {
		for _, address := range node.Status.Addresses {
			if ip := net.ParseIP(address.Address); address.Type == kind && ip != nil {
				hostIPs = append(hostIPs, corev1.HostIP{IP: ip.String()})
			}
		}
	}
	isIPv6 := func(ip corev1.HostIP) bool { return strings.Contains(ip.IP, ":") }
	hostIPs = slices.CompactFunc(hostIPs, func(a, b corev1.HostIP) bool { return isIPv6(a) == isIPv6(b) })
	status := corev1.PodStatus{
		Phase:                 corev1.PodPending,
		ObservedGeneration:    pod.Generation,
		StartTime:             &metav1.Time{Time: now},
		HostIPs:               hostIPs[:min(2, len(hostIPs))],
		Conditions:            conditions,
		InitContainerStatuses: waitingContainers(pod.Spec.InitContainers, podInitializing),
		ContainerStatuses:     waitingContainers(pod.Spec.Containers, reason),
		Resources:             resources,
		AllocatedResources:    resources.Requests,
	}
	if len(status.HostIPs) > 0 {
		status.HostIP = status.HostIPs[0].IP
	}
	return status
}

func containerNames(containers []corev1.Container) []string {
	var all []string
	for i := range containers {
		all = append(all, containers[i].Name)
	}
	return all
}

func waitingContainers(containers []corev1.Container, reason string) []corev1.ContainerStatus {
	statuses := make([]corev1.ContainerStatus, len(containers))
	for i := range containers {
		statuses[i] = corev1.ContainerStatus{
			Name:    containers[i].Name,
			Image:   containers[i].Image,
			State:   corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}},
			Started: new(false),
		}
		// Stages keep the mounts. A fake node has no runtime, so they are recursively read-only only where the Pod requires it.
		for _, mount := range containers[i].VolumeMounts {
			status := corev1.VolumeMountStatus{Name: mount.Name, MountPath: mount.MountPath, ReadOnly: mount.ReadOnly}
			switch mode := mount.RecursiveReadOnly; {
			case mount.ReadOnly && mode != nil && *mode == corev1.RecursiveReadOnlyEnabled:
				status.RecursiveReadOnly = mode
			case mount.ReadOnly:
				status.RecursiveReadOnly = new(corev1.RecursiveReadOnlyDisabled)
			}
			statuses[i].VolumeMounts = append(statuses[i].VolumeMounts, status)
		}
	}
	return statuses
}

// FailureMessage is what the kubelet's event says of a failure to prepare.
func FailureMessage(err error) error {
	return fmt.Errorf("Failed to prepare dynamic resources: prepare dynamic resources: %s", strings.TrimSpace(err.Error()))
}

// UnprepareFailureMessage is the event message for a failure to unprepare. The kubelet only logs such a failure.
func UnprepareFailureMessage(err error) error {
	return fmt.Errorf("Failed to unprepare dynamic resources: unprepare dynamic resources: %s; the Pod is kept until its driver is back, its claims are deallocated, or it is deleted by force", strings.TrimSpace(err.Error()))
}
