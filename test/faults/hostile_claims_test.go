package faults

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// results is the most that an allocation may have.
const results = resourcev1.AllocationResultsMaxSize

// claimsOfMany has claims whose every device is another driver's: of drivers that
// nobody knows, and of drivers with a template each.
func (h *hostile) claimsOfMany(t *testing.T) {
	require.NoError(t, h.createNode(t.Context(), "many", map[string]string{kindLabel: "many"}))
	require.NoError(t, h.configure(t.Context(), manyTemplates()))
	h.eventually(t, func() string {
		list, err := h.client.ResourceV1().ResourceSlices().List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=many"})
		if err != nil || len(list.Items) != results {
			return fmt.Sprintf("%d slices, want %d: %v", len(list.Items), results, err)
		}
		return ""
	})
	for prefix, drivers := range map[string][]string{"known": knownDrivers, "unknown": unknownDrivers} {
		for i := range 5 {
			require.NoError(t, h.allocateAll(t.Context(), fmt.Sprintf("many-%s-%d", prefix, i), "many", drivers))
		}
		entries := 0
		if prefix == "known" {
			entries = results
		}
		for i := range 5 {
			h.prepared(t, fmt.Sprintf("many-%s-%d", prefix, i), entries)
		}
	}
	h.measure(t) // and the others are served meanwhile
}

var knownDrivers, unknownDrivers = manyDrivers("known"), manyDrivers("unknown")

func manyDrivers(prefix string) []string {
	var names []string
	for i := range results {
		names = append(names, fmt.Sprintf("%s-%d.example.com", prefix, i))
	}
	return names
}

// manyTemplates are one for each of the drivers.
func manyTemplates() string {
	var documents strings.Builder
	for i, driver := range knownDrivers {
		one := poolTemplate{name: fmt.Sprint("many-", i), driver: driver, kinds: []string{"many"}, device: "d", count: 1}
		documents.WriteString(one.yaml())
	}
	return documents.String()
}

// allocateEach has a Pod come with a claim of a device of each driver, over and
// over, and takes the one away that came ten before.
func allocateEach(drivers []string) func(ctx context.Context, h *hostile, round int) error {
	return func(ctx context.Context, h *hostile, _ int) error {
		ctx = context.WithoutCancel(ctx)
		h.pods++
		name := func(i int) string { return fmt.Sprint("hostile-", i) }
		if err := h.allocateAll(ctx, name(h.pods), fmt.Sprint(poisoned, "-0"), drivers); err != nil {
			return err
		}
		former := name(h.pods - 10)
		if err := h.client.CoreV1().Pods(namespace).Delete(ctx, former, atOnce); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if err := h.client.ResourceV1().ResourceClaims(namespace).Delete(ctx, former, atOnce); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		return nil
	}
}

// allocateAll makes a Pod on the node with a claim that has a device of each driver.
func (h *hostile) allocateAll(ctx context.Context, name, node string, drivers []string) error {
	var devices []device
	for _, driver := range drivers {
		devices = append(devices, device{driver, node, "d-0"})
	}
	return h.allocate(ctx, boundPod(name, node), devices...)
}

// boundPod is a Pod on a node with a claim of its name.
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
	deadline := time.Now().Add(stuck)
	missing := check()
	for missing != "" && time.Now().Before(deadline) {
		sleep(t.Context(), 50*time.Millisecond)
		missing = check()
	}
	require.Empty(t, missing)
}
