package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/test/sidecar"
)

// stageFiles are the Stages of a folder of the project.
func stageFiles(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(sidecar.Root(), "stages", folder, "*.yaml"))
	require.NoError(t, err)
	files = slices.DeleteFunc(files, func(file string) bool {
		return slices.Contains([]string{"kustomization.yaml", "kwok-dra-configuration.yaml"}, filepath.Base(file))
	})
	require.NotEmpty(t, files)
	return files
}

// namespace creates a namespace with a DeviceClass and a claim template for one
// device of the driver, all of that name.
func (h *harness) namespace(name, driver string) {
	h.Helper()
	_, err := h.client.CoreV1().Namespaces().Create(h.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(h, err)
	_, err = h.client.CoreV1().ServiceAccounts(name).Create(h.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(h, err)
	}
	h.deviceClass(name, driver)
	_, err = h.client.ResourceV1().ResourceClaimTemplates(name).Create(h.Context(), &resourcev1.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       resourcev1.ResourceClaimTemplateSpec{Spec: claimSpec(name)},
	}, metav1.CreateOptions{})
	require.NoError(h, err)
}

// deviceClass creates a class of all devices of a driver.
func (h *harness) deviceClass(name, driver string) {
	h.Helper()
	_, err := h.client.ResourceV1().DeviceClasses().Create(h.Context(), &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{
			CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", driver)},
		}}},
	}, metav1.CreateOptions{})
	require.NoError(h, err)
}

// claimSpec claims one device of each class.
func claimSpec(classes ...string) resourcev1.ResourceClaimSpec {
	spec := resourcev1.ResourceClaimSpec{}
	for _, class := range classes {
		spec.Devices.Requests = append(spec.Devices.Requests, resourcev1.DeviceRequest{
			Name: class, Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class},
		})
	}
	return spec
}

func (h *harness) createClaim(namespace, name string, spec resourcev1.ResourceClaimSpec) *resourcev1.ResourceClaim {
	h.Helper()
	claim, err := h.client.ResourceV1().ResourceClaims(namespace).Create(h.Context(), &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec,
	}, metav1.CreateOptions{})
	require.NoError(h, err)
	return claim
}

// newPod is a Pod for nodes with the label kind=<kind> whose container uses the
// named claims; one of the name "template" is made from the namespace's template.
func newPod(name, kind string, claims ...string) *corev1.Pod {
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
		if claim == fromTemplate {
			podClaim.ResourceClaimName, podClaim.ResourceClaimTemplateName = nil, &kind
		}
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, podClaim)
		pod.Spec.Containers[0].Resources.Claims = append(pod.Spec.Containers[0].Resources.Claims, corev1.ResourceClaim{Name: podClaim.Name})
	}
	return pod
}

const fromTemplate = "template"

func (h *harness) createPod(namespace string, pod *corev1.Pod) *corev1.Pod {
	h.Helper()
	created, err := h.client.CoreV1().Pods(namespace).Create(h.Context(), pod, metav1.CreateOptions{})
	require.NoError(h, err)
	return created
}

func (h *harness) pod(namespace, name string) *corev1.Pod {
	h.Helper()
	pod, err := h.client.CoreV1().Pods(namespace).Get(h.Context(), name, metav1.GetOptions{})
	require.NoError(h, err)
	return pod
}

func (h *harness) deletePod(namespace, name string, grace int64) {
	h.Helper()
	require.NoError(h, h.client.CoreV1().Pods(namespace).Delete(h.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &grace}))
}

// gone waits until a Pod is no more.
func (h *harness) gone(namespace, name string) {
	h.Helper()
	h.eventually(patience, func() string {
		pod, err := h.client.CoreV1().Pods(namespace).Get(h.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return ""
		}
		require.NoError(h, err)
		return fmt.Sprintf("pod %s is still there: %s", name, summary(pod))
	})
}

// running waits until a Pod runs.
func (h *harness) running(namespace, name string) *corev1.Pod {
	h.Helper()
	return h.podEventually(namespace, name, func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning })
}

// podEventually waits for a state of a Pod.
func (h *harness) podEventually(namespace, name string, wanted func(pod *corev1.Pod) bool) *corev1.Pod {
	h.Helper()
	var pod *corev1.Pod
	h.eventually(patience, func() string {
		if pod = h.pod(namespace, name); wanted(pod) {
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

// podCondition returns the status of a condition, or "".
func podCondition(pod *corev1.Pod, kind corev1.PodConditionType) corev1.ConditionStatus {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == kind {
			return condition.Status
		}
	}
	return ""
}

func isReady(pod *corev1.Pod) bool {
	return podCondition(pod, corev1.PodReadyToStartContainers) == corev1.ConditionTrue
}

func (h *harness) claim(namespace, name string) *resourcev1.ResourceClaim {
	h.Helper()
	claim, err := h.client.ResourceV1().ResourceClaims(namespace).Get(h.Context(), name, metav1.GetOptions{})
	require.NoError(h, err)
	return claim
}

// claimOf is the claim that was made for a Pod from its template.
func (h *harness) claimOf(namespace, pod string) *resourcev1.ResourceClaim {
	h.Helper()
	return h.claim(namespace, *h.pod(namespace, pod).Status.ResourceClaimStatuses[0].ResourceClaimName)
}

// entries waits until a claim has that many entries in status.devices.
func (h *harness) entries(namespace, name string, count int) *resourcev1.ResourceClaim {
	h.Helper()
	var claim *resourcev1.ResourceClaim
	h.eventually(patience, func() string {
		if claim = h.claim(namespace, name); len(claim.Status.Devices) == count {
			return ""
		}
		return fmt.Sprintf("claim %s has %d entries, want %d: %+v", name, len(claim.Status.Devices), count, claim.Status)
	})
	return claim
}

// failedPrepare waits for the event of a prepare that failed.
func (h *harness) failedPrepare(namespace, pod string) corev1.Event {
	h.Helper()
	var event corev1.Event
	h.eventually(patience, func() string {
		list, err := h.client.CoreV1().Events(namespace).List(h.Context(), metav1.ListOptions{
			FieldSelector: "involvedObject.name=" + pod + ",reason=FailedPrepareDynamicResources",
		})
		require.NoError(h, err)
		if len(list.Items) == 0 {
			return "no event about pod " + pod + ": " + summary(h.pod(namespace, pod))
		}
		event = list.Items[0]
		return ""
	})
	return event
}

// messages are those of all events about an object with a reason.
func (h *harness) messages(namespace, object, reason string) string {
	h.Helper()
	list, err := h.client.CoreV1().Events(namespace).List(h.Context(), metav1.ListOptions{
		FieldSelector: "involvedObject.name=" + object + ",reason=" + reason,
	})
	require.NoError(h, err)
	var messages []string
	for _, event := range list.Items {
		messages = append(messages, event.Message)
	}
	return strings.Join(messages, "; ")
}

// bind binds a Pod in the scheduler's place.
func (h *harness) bind(namespace, pod, node string) {
	h.Helper()
	require.NoError(h, h.client.CoreV1().Pods(namespace).Bind(h.Context(), &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod}, Target: corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{}))
}

// foreignSlice publishes eight devices in another driver's place.
func (h *harness) foreignSlice(node, driver string) {
	h.Helper()
	var devices []resourcev1.Device
	for i := range 8 {
		devices = append(devices, resourcev1.Device{Name: fmt.Sprint("foreign-", i)})
	}
	_, err := h.client.ResourceV1().ResourceSlices().Create(h.Context(), &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "foreign-"},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, NodeName: &node,
			Pool:    resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1},
			Devices: devices,
		},
	}, metav1.CreateOptions{})
	require.NoError(h, err)
}

// reportForeign writes a claim's entry in another driver's place.
func (h *harness) reportForeign(namespace, name, driver string) {
	h.Helper()
	claim := h.claim(namespace, name)
	for _, result := range claim.Status.Allocation.Devices.Results {
		if result.Driver == driver {
			claim.Status.Devices = append(claim.Status.Devices, resourcev1.AllocatedDeviceStatus{
				Driver: driver, Pool: result.Pool, Device: result.Device,
				Conditions: []metav1.Condition{{Type: "Foreign", Status: metav1.ConditionTrue, Reason: "Foreign", LastTransitionTime: metav1.Now()}},
			})
		}
	}
	_, err := h.client.ResourceV1().ResourceClaims(namespace).UpdateStatus(h.Context(), claim, metav1.UpdateOptions{})
	require.NoError(h, err)
}

func foreignEntry(claim *resourcev1.ResourceClaim, driver string) resourcev1.AllocatedDeviceStatus {
	for _, entry := range claim.Status.Devices {
		if entry.Driver == driver {
			return entry
		}
	}
	return resourcev1.AllocatedDeviceStatus{}
}

func (h *harness) patchPod(namespace, name, patch string, subresources ...string) {
	h.Helper()
	_, err := h.client.CoreV1().Pods(namespace).Patch(h.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
	require.NoError(h, err)
}

// settled waits a little longer than kwok-dra waits before it withdraws.
func settled(h *harness) {
	wait(h.Context(), 7*time.Second)
}
