package plan

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The texts are those of pkg/kubelet/status/generate.go and kubelet_pods.go.
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
	Data      []byte
}

// The operations of patches, as kwok_dra_pod_writes_total has them.
const (
	PatchWaiting    = "waiting"
	PatchReady      = "ready"
	PatchUnprepared = "unprepared"
	PatchHealth     = "health"
)

// statusPatch is a strategic merge patch of a Pod's status, as the kubelet's: the
// UID keeps it from another Pod of the same name. A kubelet is the only one on its
// node; here kwok and, for a moment, another replica write as well.
type statusPatch struct {
	Metadata struct {
		UID             types.UID `json:"uid"`
		ResourceVersion string    `json:"resourceVersion,omitempty"`
	} `json:"metadata"`
	Status corev1.PodStatus `json:"status"`
}

func newStatusPatch(pod *corev1.Pod, operation string, status corev1.PodStatus) (*Patch, error) {
	patch := statusPatch{Status: status}
	patch.Metadata.UID = pod.UID
	if status.Phase != "" { // it would set a Pod back that runs by now
		patch.Metadata.ResourceVersion = pod.ResourceVersion
	}
	encoded, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encode status of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return &Patch{operation, types.StrategicMergePatchType, encoded}, nil
}

// startStatus is the status with just PodReadyToStartContainers.
func startStatus(pod *corev1.Pod, ready corev1.ConditionStatus, now time.Time) corev1.PodStatus {
	condition := corev1.PodCondition{Type: corev1.PodReadyToStartContainers, Status: ready}
	return corev1.PodStatus{Conditions: conditionsAt(pod, now, condition)}
}

// waitingStatus is the status that a kubelet gives a Pod whose claims have not
// been prepared.
func waitingStatus(pod *corev1.Pod, node *corev1.Node, now time.Time) corev1.PodStatus {
	unready := fmt.Sprintf("containers with unready status: %s", append(sidecars(pod), names(pod.Spec.Containers)...))
	conditions := []corev1.PodCondition{
		{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse},
		{Type: corev1.PodInitialized, Status: corev1.ConditionTrue},
		{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: containersNotReady, Message: unready},
		{Type: corev1.ContainersReady, Status: corev1.ConditionFalse, Reason: containersNotReady, Message: unready},
	}
	reason := containerCreating
	if incomplete := names(pod.Spec.InitContainers); len(incomplete) > 0 {
		reason = podInitializing
		conditions[1] = corev1.PodCondition{
			Type: corev1.PodInitialized, Status: corev1.ConditionFalse, Reason: containersNotInitialized,
			Message: fmt.Sprintf("containers with incomplete status: %s", incomplete),
		}
	}
	status := corev1.PodStatus{
		Phase:                 corev1.PodPending,
		ObservedGeneration:    pod.Generation,
		StartTime:             &metav1.Time{Time: now},
		Conditions:            conditionsAt(pod, now, conditions...),
		InitContainerStatuses: waitingContainers(pod.Spec.InitContainers, podInitializing),
		ContainerStatuses:     waitingContainers(pod.Spec.Containers, reason),
	}
	for _, ip := range hostIPs(node) {
		status.HostIPs = append(status.HostIPs, corev1.HostIP{IP: ip.String()})
	}
	if len(status.HostIPs) > 0 {
		status.HostIP = status.HostIPs[0].IP
	}
	return status
}

// hostIPs are the node's first address, internal ones before external ones, and
// the first one of the other family (GetNodeHostIPs in pkg/util/node). The API
// server takes no more.
func hostIPs(node *corev1.Node) []net.IP {
	var all []net.IP
	for _, kind := range []corev1.NodeAddressType{corev1.NodeInternalIP, corev1.NodeExternalIP} {
		for _, address := range node.Status.Addresses {
			if ip := net.ParseIP(address.Address); address.Type == kind && ip != nil {
				all = append(all, ip)
			}
		}
	}
	isIPv6 := func(ip net.IP) bool { return ip.To4() == nil }
	for _, ip := range all {
		if isIPv6(ip) != isIPv6(all[0]) {
			return []net.IP{all[0], ip}
		}
	}
	return all[:min(1, len(all))]
}

// conditionsAt completes conditions of a Pod. Their transition is now, unless the
// Pod has them with that status already.
func conditionsAt(pod *corev1.Pod, now time.Time, conditions ...corev1.PodCondition) []corev1.PodCondition {
	for i := range conditions {
		conditions[i].ObservedGeneration = pod.Generation
		conditions[i].LastTransitionTime = metav1.Time{Time: now}
		if former := podCondition(pod, conditions[i].Type); former != nil && former.Status == conditions[i].Status {
			conditions[i].LastTransitionTime = former.LastTransitionTime
		}
	}
	return conditions
}

func names(containers []corev1.Container) []string {
	var all []string
	for i := range containers {
		all = append(all, containers[i].Name)
	}
	return all
}

// sidecars are the init containers that run on, which count for readiness.
func sidecars(pod *corev1.Pod) []string {
	var all []string
	for _, container := range pod.Spec.InitContainers {
		if container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			all = append(all, container.Name)
		}
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
	}
	return statuses
}

// EventMessage is the kubelet's message of the event of a failure to prepare.
func EventMessage(err error) error {
	return fmt.Errorf("Failed to prepare dynamic resources: prepare dynamic resources: %s", strings.TrimSpace(err.Error()))
}
