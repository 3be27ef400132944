package harness

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Unschedulable waits until the scheduler has tried a Pod in vain.
func (h *H) Unschedulable(namespace, name string) {
	h.Helper()
	h.PodEventually(namespace, name, func(pod *corev1.Pod) bool {
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonUnschedulable {
				return true
			}
		}
		return false
	})
}

// NewPod is a Pod for nodes with the label kind=<kind> whose container uses the
// named claims; one of the name "template" is made from the namespace's template.
func NewPod(name, kind string, claims ...string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			NodeSelector:                  map[string]string{"kind": kind},
			Containers:                    []corev1.Container{{Name: "c", Image: "busybox"}},
			TerminationGracePeriodSeconds: new(int64(1)),
			AutomountServiceAccountToken:  new(false),
		},
	}
	for i, claim := range claims {
		podClaim := corev1.PodResourceClaim{Name: fmt.Sprintf("claim-%d", i), ResourceClaimName: &claim}
		if claim == FromTemplate {
			podClaim.ResourceClaimName, podClaim.ResourceClaimTemplateName = nil, &kind
		}
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, podClaim)
		pod.Spec.Containers[0].Resources.Claims = append(pod.Spec.Containers[0].Resources.Claims, corev1.ResourceClaim{Name: podClaim.Name})
	}
	return pod
}

// FromTemplate is a claim of NewPod that is made from the ResourceClaimTemplate of the namespace.
const FromTemplate = "template"

// CreatePod creates a Pod.
func (h *H) CreatePod(namespace string, pod *corev1.Pod) *corev1.Pod {
	h.Helper()
	created, err := h.Client.CoreV1().Pods(namespace).Create(h.Context(), pod, metav1.CreateOptions{})
	require.NoError(h, err)
	return created
}

// Pod reads a Pod.
func (h *H) Pod(namespace, name string) *corev1.Pod {
	h.Helper()
	pod, err := h.Client.CoreV1().Pods(namespace).Get(h.Context(), name, metav1.GetOptions{})
	require.NoError(h, err)
	return pod
}

// DeletePod deletes a Pod with a grace period in seconds.
func (h *H) DeletePod(namespace, name string, grace int64) {
	h.Helper()
	require.NoError(h, h.Client.CoreV1().Pods(namespace).Delete(h.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &grace}))
}

// Gone waits until a Pod is no more.
func (h *H) Gone(namespace, name string) {
	h.Helper()
	h.Eventually(Patience, func() string {
		pod, err := h.Client.CoreV1().Pods(namespace).Get(h.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return ""
		}
		require.NoError(h, err)
		return fmt.Sprintf("pod %s is still there: %s", name, summary(pod))
	})
}

// Running waits until a Pod runs.
func (h *H) Running(namespace, name string) *corev1.Pod {
	h.Helper()
	return h.PodEventually(namespace, name, func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning })
}

// PodEventually waits for a state of a Pod.
func (h *H) PodEventually(namespace, name string, wanted func(pod *corev1.Pod) bool) *corev1.Pod {
	h.Helper()
	var pod *corev1.Pod
	h.Eventually(Patience, func() string {
		if pod = h.Pod(namespace, name); wanted(pod) {
			return ""
		}
		return fmt.Sprintf("pod %s: %s", name, summary(pod))
	})
	return pod
}

func summary(pod *corev1.Pod) string {
	status, err := json.Marshal(pod.Status)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("node %q, deleted %v, status %s", pod.Spec.NodeName, pod.DeletionTimestamp, status)
}

// PodCondition returns the status of a condition, or "".
func PodCondition(pod *corev1.Pod, kind corev1.PodConditionType) corev1.ConditionStatus {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == kind {
			return condition.Status
		}
	}
	return ""
}

// IsReady reports whether a Pod is ready.
func IsReady(pod *corev1.Pod) bool {
	return PodCondition(pod, corev1.PodReadyToStartContainers) == corev1.ConditionTrue
}

// FailedPrepare waits for the event of a prepare that failed.
func (h *H) FailedPrepare(namespace, pod string) corev1.Event {
	h.Helper()
	var event corev1.Event
	h.Eventually(Patience, func() string {
		list, err := h.Client.CoreV1().Events(namespace).List(h.Context(), metav1.ListOptions{
			FieldSelector: "involvedObject.name=" + pod + ",reason=FailedPrepareDynamicResources",
		})
		require.NoError(h, err)
		if len(list.Items) == 0 {
			return "no event about pod " + pod + ": " + summary(h.Pod(namespace, pod))
		}
		event = list.Items[0]
		return ""
	})
	return event
}

// Messages are those of all events about an object with a reason.
func (h *H) Messages(namespace, object, reason string) string {
	h.Helper()
	list, err := h.Client.CoreV1().Events(namespace).List(h.Context(), metav1.ListOptions{
		FieldSelector: "involvedObject.name=" + object + ",reason=" + reason,
	})
	require.NoError(h, err)
	var messages []string
	for _, event := range list.Items {
		messages = append(messages, event.Message)
	}
	return strings.Join(messages, "; ")
}

// Bind binds a Pod, standing in for the scheduler.
func (h *H) Bind(namespace, pod, node string) {
	h.Helper()
	require.NoError(h, h.Client.CoreV1().Pods(namespace).Bind(h.Context(), &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod}, Target: corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{}))
}

// PatchPod patches a Pod or a subresource of it.
func (h *H) PatchPod(namespace, name, patch string, subresources ...string) {
	h.Helper()
	_, err := h.Client.CoreV1().Pods(namespace).Patch(h.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
	require.NoError(h, err)
}

// Settled waits a little longer than kwok-dra waits before it withdraws.
func Settled(h *H) {
	Wait(h.Context(), 7*time.Second)
}
