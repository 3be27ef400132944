package scale

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	watchapi "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/screen"
	"github.com/kwok-dra/kwok-dra/internal/dractl/target"
	"github.com/kwok-dra/kwok-dra/internal/testing/apitest"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// newApplier makes nodes of nvidia-t4 where there are some already.
func newApplier(t *testing.T, client *fake.Clientset, want int) (*applier, *target.Target) {
	t.Helper()
	of, err := target.Read(cli.Streams{}, []string{"nvidia-t4"}, &target.Known{})
	require.NoError(t, err)
	nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	seen := &target.Observed{Templates: of.Templates}
	for i := range nodes.Items {
		seen.Nodes = append(seen.Nodes, metav1.PartialObjectMetadata{ObjectMeta: nodes.Items[i].ObjectMeta})
	}
	plan := target.New(of, want, seen)
	plan.Make = nil // tests on real clusters apply
	return &applier{
		world: &world{client: client}, streams: cli.Streams{Out: io.Discard, ErrOut: io.Discard},
		plan: plan, seen: seen, timeout: time.Minute,
	}, of
}

// publish acts as kwok and kwok-dra do on each Node that is made.
func publish(client *fake.Clientset) {
	client.PrependReactor("create", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		node := action.(clienttesting.CreateAction).GetObject().(*corev1.Node)
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		return false, nil, client.Tracker().Add(sliceOf(node.Name, "gpu.nvidia.com", 0, 1, 1))
	})
}

// sliceOf is a slice of a pool with that many.
func sliceOf(node, driver string, number, generation, of int64) *resourcev1.ResourceSlice {
	return &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(node, "-", driver, "-", number), Labels: map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedByValue}},
		Spec:       resourcev1.ResourceSliceSpec{Driver: driver, NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, Generation: generation, ResourceSliceCount: of}},
	}
}

// TestStopped: Ctrl-C ends all that is under way and says where it is, and the same command
// goes on from there.
func TestStopped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		publish(client)
		ctx, interrupt := context.WithCancel(t.Context())
		var created atomic.Int64
		client.PrependReactor("create", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
			if ctx.Err() != nil {
				return true, nil, ctx.Err()
			}
			if created.Add(1) == 40 {
				interrupt()
			}
			return false, nil, nil
		})
		a, of := newApplier(t, client, 100)
		err := a.reachCount(ctx, of, 100)
		made, listErr := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		require.NoError(t, listErr)
		require.Less(t, len(made.Items), 100)
		require.EqualError(t, err, fmt.Sprintf("stopped: %d of 100 nodes are made: the same command goes on from there", len(made.Items)))

		ctx, interrupt = context.WithCancel(t.Context())
		defer interrupt()
		created.Store(1000)
		a, of = newApplier(t, client, 100)
		var out bytes.Buffer
		a.streams.Out = &out
		require.Len(t, a.plan.Nodes, 100-len(made.Items))
		require.NoError(t, a.reachCount(ctx, of, 100))
		require.Equal(t, "nvidia-t4: 100 of 100 nodes Ready, 100 of 100 pools complete\n", out.String())
	})
}

// TestStoppedDeletion is the same of nodes that are deleted.
func TestStoppedDeletion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		publish(client)
		a, of := newApplier(t, client, 100)
		require.NoError(t, a.reachCount(t.Context(), of, 100))

		ctx, interrupt := context.WithCancel(t.Context())
		var deleted atomic.Int64
		client.PrependReactor("delete", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
			if ctx.Err() != nil {
				return true, nil, ctx.Err()
			}
			if deleted.Add(1) == 40 {
				interrupt()
			}
			return false, nil, nil
		})
		a, of = newApplier(t, client, 100)
		a.plan = target.Delete(of, a.seen)
		require.Len(t, a.plan.RemoveNodes, 100)
		err := a.removeTarget(ctx, "nvidia-t4")
		left, listErr := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		require.NoError(t, listErr)
		require.NotEmpty(t, left.Items)
		require.EqualError(t, err, fmt.Sprintf("stopped: %d of 100 nodes deleted: the same command goes on from there", 100-len(left.Items)))
	})
}

// TestStalled: without a wait nodes are only made. A fleet that makes no progress ends with what to look at, and one that is slow
// does not.
func TestStalled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		a, of := newApplier(t, client, 2)
		var out bytes.Buffer
		a.streams.Out, a.timeout = &out, 0
		require.NoError(t, a.reachCount(t.Context(), of, 2))
		require.Equal(t, "nvidia-t4: 2 of 2 nodes made\n", out.String())

		a, of = newApplier(t, client, 3)
		began := time.Now()
		err := a.reachCount(t.Context(), of, 3)
		require.ErrorContains(t, err, "0 of 3 nodes are Ready, and no other for 1m0s: is kwok running")
		require.Less(t, time.Since(began), 2*time.Minute)

		a, of = newApplier(t, client, 3)
		go func() {
			for number := range int64(3) {
				time.Sleep(50 * time.Second)
				node, _ := client.CoreV1().Nodes().Get(t.Context(), fmt.Sprint("nvidia-t4-", number), metav1.GetOptions{})
				node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
				_, _ = client.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{})
			}
		}()
		err = a.reachCount(t.Context(), of, 3)
		require.ErrorContains(t, err, "0 of 3 pools are complete, and no other for 1m0s: does kwok-dra run")
	})
}

// TestWatchRefused: who may not watch the fleet learns that at once, and a wait for the API server has an end. Nothing is
// made if that is known by then.
func TestWatchRefused(t *testing.T) {
	t.Parallel()
	const advice = ": the verbs list and watch are needed; without them, --timeout 0 makes nodes and does not wait"
	for name, c := range map[string]struct {
		verb, resource string
		err            error
		want           string
		took           time.Duration
	}{
		"list":  {"list", "resourceslices", apierrors.NewForbidden(resourcev1.Resource("resourceslices"), "", errors.New("no")), "watch resourceslices: failed to list *v1.ResourceSlice: resourceslices.resource.k8s.io is forbidden: no" + advice, 0},
		"watch": {"watch", "nodes", apierrors.NewForbidden(corev1.Resource("nodes"), "", errors.New("no")), "watch nodes: nodes is forbidden: no" + advice, 0},
		"late":  {"list", "resourceslices", apierrors.NewInternalError(errors.New("no leader")), "list nodes and resourceslices: the API server has not listed them within --timeout 1m0s", time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client := apitest.New()
				a, of := newApplier(t, client.Clientset, 2)
				client.PrependReactor(c.verb, c.resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, c.err })
				if c.verb == "watch" {
					client.PrependWatchReactor(c.resource, func(clienttesting.Action) (bool, watchapi.Interface, error) { return true, nil, c.err })
				}
				began := time.Now()
				require.EqualError(t, a.reachCount(t.Context(), of, 2), c.want)
				require.Equal(t, c.took, time.Since(began))
				if c.verb == "list" {
					require.Zero(t, a.made.Load())
				}
			})
		})
	}
}

// TestWatch counts nodes, and pools of which all slices are of one generation.
func TestWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		w, err := startWatch(t.Context(), nil, client, "t", time.Minute)
		require.NoError(t, err)
		requireCounts := func(nodes, ready, pools int) {
			t.Helper()
			synctest.Wait()
			require.Equal(t, counts{nodes, ready, pools}, w.countProgress(map[string]bool{"gpu": true}))
		}
		requireCounts(0, 0, 0)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{v1alpha1.ScaleLabel: "t"}}}
		tracker := client.Tracker()
		nodes, slicesOf := corev1.SchemeGroupVersion.WithResource("nodes"), resourcev1.SchemeGroupVersion.WithResource("resourceslices")
		require.NoError(t, tracker.Create(nodes, node, ""))
		requireCounts(1, 0, 0)
		ready := node.DeepCopy()
		ready.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		require.NoError(t, tracker.Update(nodes, ready, ""))
		require.NoError(t, tracker.Create(slicesOf, sliceOf("a", "gpu", 0, 1, 2), ""))
		require.NoError(t, tracker.Create(slicesOf, sliceOf("a", "nic", 0, 1, 1), ""))
		require.NoError(t, tracker.Create(slicesOf, sliceOf("other", "gpu", 0, 1, 1), ""))
		requireCounts(1, 1, 0)
		require.NoError(t, tracker.Create(slicesOf, sliceOf("a", "gpu", 1, 1, 2), ""))
		requireCounts(1, 1, 1)
		require.NoError(t, tracker.Update(slicesOf, sliceOf("a", "gpu", 1, 2, 2), ""))
		requireCounts(1, 1, 0)
		require.NoError(t, tracker.Update(slicesOf, sliceOf("a", "gpu", 0, 2, 2), ""))
		requireCounts(1, 1, 1)
		require.NoError(t, tracker.Delete(slicesOf, "", "a-gpu-0"))
		requireCounts(1, 1, 0)
		require.NoError(t, tracker.Delete(nodes, "", "a"))
		requireCounts(0, 0, 0)
	})
}

// TestProgress: lines from time to time in a pipe, a bar that is wiped on a terminal.
func TestProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var told bytes.Buffer
		done := 1
		show := func(terminal *screen.Screen) string {
			told.Reset()
			a := &applier{streams: cli.Streams{ErrOut: &told}, terminal: terminal}
			p := a.startProgress(func() string { return fmt.Sprint(done, " of 4") }, func() float64 { return float64(done) / 4 })
			time.Sleep(lineInterval + pollInterval/2)
			done = 3
			time.Sleep(lineInterval)
			p.stop()
			return told.String()
		}
		require.Equal(t, "1 of 4, 5 s\n3 of 4, 10 s\n", show(nil))
		done = 1
		shown := show(screen.New(&told, func() (int, int, error) { return 40, 24, nil }))
		require.NotContains(t, shown, "\n")
		require.Contains(t, shown, "\r██████░░░░░░░░░░░░░░░░░░░░░ 1 of 4, 0 s\x1b[K")
		require.Contains(t, shown, " 3 of 4, 10 s\x1b[K")
		require.True(t, strings.HasSuffix(shown, "\r\x1b[K"), "the bar is wiped")
	})
	require.Equal(t, "█████ half", barLine("half", 1.5, 10))
	require.Equal(t, "too long f", barLine("too long for a bar", 0.5, 10))
	require.Empty(t, barLine("none", 0.5, -1))
}

// TestUsers: who asks for devices of a DeviceClass.
func TestUsers(t *testing.T) {
	t.Parallel()
	requests := []resourcev1.DeviceRequest{{Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "claimed"}}, {FirstAvailable: []resourcev1.DeviceSubRequest{{DeviceClassName: "alternative"}}}}
	of := metav1.ObjectMeta{Namespace: "ml", Name: "x"}
	asks := func(name corev1.ResourceName) []corev1.Container {
		return []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{name: resource.MustParse("1")}}}}
	}
	owned := func(pod string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "ml", Name: "of-" + pod, OwnerReferences: []metav1.OwnerReference{{Kind: "Pod", Name: pod, UID: types.UID(pod), Controller: new(true)}}}
	}
	generated := func(class string) resourcev1.ResourceClaimSpec {
		return resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class}}}}}
	}
	client := fake.NewClientset(
		&resourcev1.ResourceClaim{ObjectMeta: owned("x"), Spec: generated("generated")},
		&resourcev1.ResourceClaim{ObjectMeta: owned("gone"), Spec: generated("unused")},
		&resourcev1.ResourceClaim{ObjectMeta: of, Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: requests[:1]}}},
		&resourcev1.ResourceClaimTemplate{ObjectMeta: of, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: requests[1:]}}}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "x", UID: "x"}, Spec: corev1.PodSpec{NodeName: "n", Containers: asks("example.com/gpu"), InitContainers: asks("deviceclass.resource.kubernetes.io/implicit")}},
	)
	seen := &target.Observed{}
	for name, extended := range map[string]string{"claimed": "", "alternative": "", "extended": "example.com/gpu", "implicit": "", "unused": "example.com/other"} {
		class := &unstructured.Unstructured{Object: map[string]any{"kind": "DeviceClass", "metadata": map[string]any{"name": name}, "spec": map[string]any{"extendedResourceName": extended}}}
		seen.Objects = append(seen.Objects, class)
	}
	require.NoError(t, (&world{client: client}).observeUsers(t.Context(), seen))
	require.Equal(t, map[string]int{"n": 1}, seen.Pods)
	require.Equal(t, map[string]string{
		"claimed": "ResourceClaim ml/x", "alternative": "ResourceClaimTemplate ml/x", "extended": "Pod ml/x", "implicit": "Pod ml/x", "generated": "Pod ml/x",
	}, seen.Users)
}
