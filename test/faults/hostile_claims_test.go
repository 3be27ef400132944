package faults

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// results is the most that an allocation may have.
const results = resourcev1.AllocationResultsMaxSize

// manyDrivers has claims whose every device is another driver's: of drivers that
// nobody knows, and of drivers with a template each.
func (h *hostile) manyDrivers(t *testing.T) {
	require.NoError(t, h.createNode(t.Context(), "many", map[string]string{kindLabel: "many"}))
	var documents strings.Builder
	for i := range results {
		one := poolTemplate{name: fmt.Sprint("many-", i), driver: manyDriver("known", i), kinds: []string{"many"}, device: "d", count: 1}
		documents.WriteString(one.yaml())
	}
	require.NoError(t, h.configure(t.Context(), documents.String()))
	h.eventually(t, func() string {
		list, err := h.client.ResourceV1().ResourceSlices().List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=many"})
		if err != nil || len(list.Items) != results {
			return fmt.Sprintf("%d slices, want %d: %v", len(list.Items), results, err)
		}
		return ""
	})
	for prefix, entries := range map[string]int{"known": results, "unknown": 0} {
		for i := range 5 {
			h.allocate(t, fmt.Sprintf("many-%s-%d", prefix, i), prefix)
		}
		for i := range 5 {
			h.prepared(t, fmt.Sprintf("many-%s-%d", prefix, i), entries)
		}
	}
	h.measure(t) // and the others are served meanwhile
}

func manyDriver(prefix string, i int) string { return fmt.Sprintf("%s-%d.example.com", prefix, i) }

// allocate makes a Pod on the node with a claim that has a device of each driver,
// in the scheduler's place.
func (h *hostile) allocate(t *testing.T, name, prefix string) {
	claims := h.client.ResourceV1().ResourceClaims(namespace)
	claim, err := claims.Create(t.Context(), &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: claimSpec([]string{"gpu"})}, metav1.CreateOptions{})
	require.NoError(t, err)
	pod, err := h.client.CoreV1().Pods(namespace).Create(t.Context(), boundPod(name, "many"), metav1.CreateOptions{})
	require.NoError(t, err)
	allocation := &resourcev1.AllocationResult{}
	for i := range results {
		allocation.Devices.Results = append(allocation.Devices.Results, resourcev1.DeviceRequestAllocationResult{
			Request: "gpu", Driver: manyDriver(prefix, i), Pool: "many", Device: "d-0",
		})
	}
	claim.Status.Allocation = allocation
	claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: name, UID: pod.UID}}
	_, err = claims.UpdateStatus(t.Context(), claim, metav1.UpdateOptions{})
	require.NoError(t, err)
}

func boundPod(name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			NodeName: node,
			Containers: []corev1.Container{{Name: "c", Image: "busybox", Resources: corev1.ResourceRequirements{
				Claims: []corev1.ResourceClaim{{Name: "claim"}},
			}}},
			ResourceClaims:               []corev1.PodResourceClaim{{Name: "claim", ResourceClaimName: &name}},
			AutomountServiceAccountToken: new(false),
		},
	}
}

func (h *hostile) prepared(t *testing.T, name string, entries int) {
	h.eventually(t, func() string {
		pod, err := h.client.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || !startable(pod) {
			return fmt.Sprintf("pod %s is not told to start: %v", name, err)
		}
		return ""
	})
	claim, err := h.client.ResourceV1().ResourceClaims(namespace).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	require.Len(t, claim.Status.Devices, entries, name)
}

func (h *hostile) eventually(t *testing.T, check func() string) {
	t.Helper()
	deadline := time.Now().Add(*within)
	missing := check()
	for missing != "" && time.Now().Before(deadline) {
		sleep(t.Context(), 50*time.Millisecond)
		missing = check()
	}
	require.Empty(t, missing)
}
