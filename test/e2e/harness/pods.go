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

// Pods are the Pods of the cluster.
type Pods struct{ API }

// Unschedulable waits until the scheduler has tried a Pod in vain.
func (p Pods) Unschedulable(namespace, name string) {
	p.Helper()
	p.PodEventually(namespace, name, func(pod *corev1.Pod) bool {
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
func (p Pods) CreatePod(namespace string, pod *corev1.Pod) *corev1.Pod {
	p.Helper()
	created, err := p.Client.CoreV1().Pods(namespace).Create(p.Context(), pod, metav1.CreateOptions{})
	require.NoError(p, err)
	return created
}

// Pod reads a Pod.
func (p Pods) Pod(namespace, name string) *corev1.Pod {
	p.Helper()
	pod, err := p.Client.CoreV1().Pods(namespace).Get(p.Context(), name, metav1.GetOptions{})
	require.NoError(p, err)
	return pod
}

// DeletePod deletes a Pod with a grace period in seconds.
func (p Pods) DeletePod(namespace, name string, grace int64) {
	p.Helper()
	require.NoError(p, p.Client.CoreV1().Pods(namespace).Delete(p.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &grace}))
}

// Gone waits until a Pod is no more.
func (p Pods) Gone(namespace, name string) {
	p.Helper()
	p.Eventually(Patience, func() string {
		pod, err := p.Client.CoreV1().Pods(namespace).Get(p.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return ""
		}
		require.NoError(p, err)
		return fmt.Sprintf("pod %s is still there: %s", name, summarizePod(pod))
	})
}

// Running waits until a Pod runs.
func (p Pods) Running(namespace, name string) *corev1.Pod {
	p.Helper()
	return p.PodEventually(namespace, name, func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning })
}

// PodEventually waits for a state of a Pod.
func (p Pods) PodEventually(namespace, name string, wanted func(pod *corev1.Pod) bool) *corev1.Pod {
	p.Helper()
	var pod *corev1.Pod
	p.Eventually(Patience, func() string {
		if pod = p.Pod(namespace, name); wanted(pod) {
			return ""
		}
		return fmt.Sprintf("pod %s: %s", name, summarizePod(pod))
	})
	return pod
}

func summarizePod(pod *corev1.Pod) string {
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
func (p Pods) FailedPrepare(namespace, pod string) corev1.Event {
	p.Helper()
	var event corev1.Event
	p.Eventually(Patience, func() string {
		list, err := p.Client.CoreV1().Events(namespace).List(p.Context(), metav1.ListOptions{
			FieldSelector: "involvedObject.name=" + pod + ",reason=FailedPrepareDynamicResources",
		})
		require.NoError(p, err)
		if len(list.Items) == 0 {
			return "no event about pod " + pod + ": " + summarizePod(p.Pod(namespace, pod))
		}
		event = list.Items[0]
		return ""
	})
	return event
}

// Messages are those of all events about an object with a reason.
func (a API) Messages(namespace, object, reason string) string {
	a.Helper()
	list, err := a.Client.CoreV1().Events(namespace).List(a.Context(), metav1.ListOptions{
		FieldSelector: "involvedObject.name=" + object + ",reason=" + reason,
	})
	require.NoError(a, err)
	var messages []string
	for _, event := range list.Items {
		messages = append(messages, event.Message)
	}
	return strings.Join(messages, "; ")
}

// Bind binds a Pod, standing in for the scheduler.
func (p Pods) Bind(namespace, pod, node string) {
	p.Helper()
	require.NoError(p, p.Client.CoreV1().Pods(namespace).Bind(p.Context(), &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod}, Target: corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{}))
}

// PatchPod patches a Pod or a subresource of it.
func (p Pods) PatchPod(namespace, name, patch string, subresources ...string) {
	p.Helper()
	_, err := p.Client.CoreV1().Pods(namespace).Patch(p.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
	require.NoError(p, err)
}

// Settled waits a little longer than kwok-dra waits before it withdraws.
func Settled(h *H) {
	Wait(h.Context(), 7*time.Second)
}
