package harness

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// DeviceNames returns the names of the devices of a pool, in order.
func DeviceNames(pool []resourcev1.ResourceSlice) []string {
	var names []string
	for _, slice := range pool {
		for _, device := range slice.Spec.Devices {
			names = append(names, device.Name)
		}
	}
	return names
}

// PoolWatcher watches the slices of a node, and fails the test if the highest
// generation of its pool is ever complete and wrong.
type PoolWatcher struct {
	t     *testing.T
	watch watch.Interface
	done  chan struct{}

	mu      sync.Mutex
	allowed []int
	wrong   []string
}

// WatchPool starts to watch the slices of a node.
func (s Slices) WatchPool(node string) *PoolWatcher {
	s.Helper()
	stream, err := s.Client.ResourceV1().ResourceSlices().Watch(s.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	require.NoError(s, err)
	w := &PoolWatcher{t: s.T, watch: stream, done: make(chan struct{})}
	go w.watchUntilEnd()
	return w
}

// Allow says that from now on the pool may have that many devices, or as many
// as it was allowed last.
func (w *PoolWatcher) Allow(devices int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.allowed = append(w.allowed[max(0, len(w.allowed)-1):], devices)
}

func (w *PoolWatcher) watchUntilEnd() {
	defer close(w.done)
	pool := map[string]*resourcev1.ResourceSlice{}
	for event := range w.watch.ResultChan() {
		slice, ok := event.Object.(*resourcev1.ResourceSlice)
		if !ok {
			continue
		}
		if event.Type == watch.Deleted {
			delete(pool, slice.Name)
		} else {
			pool[slice.Name] = slice
		}
		w.checkPool(pool)
	}
}

// Newest are the slices of a pool's newest generation, or nil where that is not complete.
func Newest(pool map[string]*resourcev1.ResourceSlice) []*resourcev1.ResourceSlice {
	var newest []*resourcev1.ResourceSlice
	for _, slice := range pool {
		if len(newest) > 0 && slice.Spec.Pool.Generation < newest[0].Spec.Pool.Generation {
			continue
		}
		if len(newest) > 0 && slice.Spec.Pool.Generation > newest[0].Spec.Pool.Generation {
			newest = nil
		}
		newest = append(newest, slice)
	}
	if len(newest) == 0 || int(newest[0].Spec.Pool.ResourceSliceCount) != len(newest) {
		return nil
	}
	return newest
}

func (w *PoolWatcher) checkPool(pool map[string]*resourcev1.ResourceSlice) {
	newest := Newest(pool)
	if newest == nil {
		return
	}
	devices := 0
	for _, slice := range newest {
		devices += len(slice.Spec.Devices)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.allowed, devices) {
		w.wrong = append(w.wrong, fmt.Sprintf("generation %d is complete with %d devices, allowed are %v",
			newest[0].Spec.Pool.Generation, devices, w.allowed))
	}
}

// Finish ends the watch and wants it to have seen whole pools only.
func (w *PoolWatcher) Finish() {
	w.t.Helper()
	w.watch.Stop()
	<-w.done
	require.Empty(w.t, w.wrong)
}

// Allocate has the scheduler allocate all devices of the test's driver on the
// node that a CEL expression selects, and returns the claim.
func (c Claims) Allocate(node, expression string) *resourcev1.ResourceClaim {
	c.Helper()
	c.DeviceClass(node, Driver)
	claim := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: node},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
			Name: "all",
			Exactly: &resourcev1.ExactDeviceRequest{
				DeviceClassName: node,
				AllocationMode:  resourcev1.DeviceAllocationModeAll,
				Selectors:       []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}},
			},
		}}}},
	}
	_, err := c.Client.ResourceV1().ResourceClaims("default").Create(c.Context(), claim, metav1.CreateOptions{})
	require.NoError(c, err)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: node},
		Spec: corev1.PodSpec{
			NodeSelector:   map[string]string{"kind": node},
			ResourceClaims: []corev1.PodResourceClaim{{Name: "all", ResourceClaimName: &claim.Name}},
			Containers: []corev1.Container{{
				Name: "c", Image: "none", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "all"}}},
			}},
		},
	}
	_, err = c.Client.CoreV1().Pods("default").Create(c.Context(), pod, metav1.CreateOptions{})
	require.NoError(c, err)
	c.Eventually(Patience, func() string {
		claim, err = c.Client.ResourceV1().ResourceClaims("default").Get(c.Context(), claim.Name, metav1.GetOptions{})
		require.NoError(c, err)
		if claim.Status.Allocation == nil {
			return "the scheduler has not allocated the claim"
		}
		return ""
	})
	return claim
}
