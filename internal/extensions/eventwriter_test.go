package extensions

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/simulator"
	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/why"
)

// explained is a cluster of a node with so many devices, and a Pod that wants two.
type explained struct {
	*eventWriter

	pods []*corev1.Pod
	// mu guards what the eventWriter reads while it runs.
	mu      sync.Mutex
	devices int
	reads   atomic.Int32
	events  *record.FakeRecorder
	leads   bool
}

// change changes what the eventWriter finds.
func (e *explained) change(how func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	how()
}

func newExplained(after time.Duration) *explained {
	e := &explained{devices: 1, events: record.NewFakeRecorder(10), leads: true}
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name, pod.UID, pod.CreationTimestamp = "default", "p", "p", metav1.Now()
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: new("c")}}
	e.pods = []*corev1.Pod{pod}
	e.eventWriter = &eventWriter{
		after: after, recorder: e.events,
		isLeader: func() (leads bool) {
			e.change(func() { leads = e.leads })
			return leads
		},
		listUnscheduled: func(context.Context) (pods []*corev1.Pod, err error) {
			e.change(func() { pods = e.pods })
			return pods, nil
		},
		readCluster: func(context.Context) (whole *why.Cluster, err error) {
			e.reads.Add(1)
			e.change(func() { whole = e.cluster() })
			return whole, nil
		},
	}
	return e
}

func (e *explained) cluster() *why.Cluster {
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c"}}
	claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 2,
	}}}
	slice := &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{
		Driver: "d.example.com", NodeName: new("n"), Pool: resourcev1.ResourcePool{Name: "n", Generation: 1, ResourceSliceCount: 1},
		Devices: []resourcev1.Device{{Name: "a"}, {Name: "b"}}[:e.devices],
	}}
	known := why.NewCluster([]*resourcev1.ResourceClaim{claim}, nil)
	known.Scheduler = simulator.NewScheduler(&simulator.World{
		Nodes:   []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n"}}},
		Classes: []*resourcev1.DeviceClass{{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}},
		Claims:  []*resourcev1.ResourceClaim{claim}, Slices: []*resourcev1.ResourceSlice{slice},
	})
	return known
}

// said is the event that there is, or nothing.
func (e *explained) said() string {
	select {
	case event := <-e.events.Events:
		return event
	default:
		return ""
	}
}

const lacksOne = "Warning WaitingForNode no node has as many devices: node n has the most, 1, of 1 device of class gpu on 1 node; request r wants 2 on one node"

func TestExplainer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newExplained(time.Minute)
		ctx, stop := context.WithCancel(t.Context())
		go e.runUntilDone(ctx)
		pass := func(d time.Duration) { time.Sleep(d); synctest.Wait() }
		pass(time.Minute - time.Second)
		require.Empty(t, e.said())
		require.Zero(t, e.reads.Load(), "no Pod has waited for long")
		pass(explainInterval)
		require.Equal(t, lacksOne, e.said())
		require.EqualValues(t, 1, e.reads.Load())

		pass(explainAgainInterval)
		require.Empty(t, e.said(), "it is the same")
		e.change(func() { e.devices = 2 })
		pass(explainAgainInterval)
		require.Equal(t, "Warning WaitingForNode node n has what it asks for now", e.said())
		require.EqualValues(t, 3, e.reads.Load(), "once in explainAgainInterval")

		e.change(func() { e.leads, e.devices = false, 1 })
		pass(explainAgainInterval)
		require.Empty(t, e.said(), "another replica leads")
		e.change(func() { e.leads, e.pods = true, nil })
		pass(explainAgainInterval)
		require.Empty(t, e.lastEvents, "the Pod is forgotten")
		require.EqualValues(t, 3, e.reads.Load())
		stop()
		synctest.Wait()
	})
}

// TestExplainerFails has a Pod that is explained once the cluster can be read.
func TestExplainerFails(t *testing.T) {
	t.Parallel()
	e := newExplained(0)
	readCluster := e.readCluster
	e.readCluster = func(context.Context) (*why.Cluster, error) { return nil, errors.New("list nodes: forbidden") }
	require.EqualError(t, e.explainWaitingPods(t.Context()), "list nodes: forbidden")
	e.readCluster = readCluster
	require.NoError(t, e.explainWaitingPods(t.Context()))
	require.Equal(t, lacksOne, e.said())
}

// TestExplainerStops: what a search has found that was interrupted is written nowhere.
func TestExplainerStops(t *testing.T) {
	t.Parallel()
	e := newExplained(0)
	ctx, stop := context.WithCancel(t.Context())
	readCluster := e.readCluster
	e.readCluster = func(ctx context.Context) (*why.Cluster, error) {
		stop()
		return readCluster(ctx)
	}
	require.ErrorIs(t, e.explainWaitingPods(ctx), context.Canceled)
	require.Empty(t, e.said())
}
