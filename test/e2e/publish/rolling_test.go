package publish

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

var rolledNodes = flag.Int("rolled-nodes", 40, "nodes with a driver Pod that TestRollingUpdate replaces")

// wipeDelay is how long a kubelet keeps the slices of a driver without a connection. A
// Pod's times are whole seconds.
const wipeDelay = 29 * time.Second

// TestRollingUpdate replaces the driver Pods of a tenth of the nodes at a time. Pools have
// two slices, which are not written at once.
func TestRollingUpdate(t *testing.T) {
	t.Parallel()
	h := harness.New(t, cluster.Options{Config: harness.FastStages(t)})
	h.Sidecar()
	h.Configure("large", strings.Replace(chart, "count: 8", "count: 130", 1))
	h.CreateNodes("gpu", *rolledNodes)
	driver := release{h, "rolled", "rolled.example.com"}
	seen := watchRoll(h, driver)
	driver.install("gpu")
	seen.wait("v1", *rolledNodes)

	const tenth = `{"spec":{"updateStrategy":{"rollingUpdate":{"maxUnavailable":"10%"}}}}`
	_, err := h.Client.AppsV1().DaemonSets(driver.name).Patch(t.Context(), "plugin", types.StrategicMergePatchType, []byte(tenth), metav1.PatchOptions{})
	require.NoError(t, err)
	driver.upgrade("v2")
	seen.wait("v2", *rolledNodes)
	t.Log(seen.finish())
}

// roll records what happens to the Pods and the slices of a driver.
type roll struct {
	h    *harness.H
	stop context.CancelFunc
	done sync.WaitGroup

	mu      sync.Mutex
	moments []moment
	// pools are the slices of each node as they were seen last.
	pools map[string]pool
}

// moment is an event of a watch. The revision orders those of both watches.
type moment struct {
	watch.Event
	revision uint64
}

func watchRoll(h *harness.H, r release) *roll {
	h.Helper()
	ctx, stop := context.WithCancel(h.Context())
	w := &roll{h: h, stop: stop, pools: map[string]pool{}}
	nodes, err := h.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: 1})
	require.NoError(h, err)
	w.follow(ctx, nodes.ResourceVersion, func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		return h.Client.CoreV1().Pods(r.name).Watch(ctx, o)
	})
	w.follow(ctx, nodes.ResourceVersion, func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		o.FieldSelector = "spec.driver=" + r.driver
		return h.Client.ResourceV1().ResourceSlices().Watch(ctx, o)
	})
	return w
}

func (w *roll) follow(ctx context.Context, from string, open cache.WatchFuncWithContext) {
	w.h.Helper()
	stream, err := watchtools.NewRetryWatcherWithContext(ctx, from, &cache.ListWatch{WatchFuncWithContext: open})
	require.NoError(w.h, err)
	w.done.Go(func() {
		for event := range stream.ResultChan() {
			w.record(event)
		}
	})
}

func (w *roll) record(event watch.Event) {
	object, ok := event.Object.(metav1.Object)
	if !ok {
		return
	}
	revision, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.moments = append(w.moments, moment{event, revision})
	if slice, ok := event.Object.(*resourcev1.ResourceSlice); ok {
		see(w.pools, event.Type, slice)
	}
}

// wait waits until the pools of that many nodes are complete and of that version.
func (w *roll) wait(version string, nodes int) {
	w.h.Helper()
	w.h.Eventually(harness.Patience+time.Duration(nodes)*time.Second, func() string {
		w.mu.Lock()
		defer w.mu.Unlock()
		count := 0
		for _, pool := range w.pools {
			if slices.Equal(pool.versions(), []string{version}) {
				count++
			}
		}
		if count == nodes {
			return ""
		}
		return fmt.Sprintf("%d of %d pools are of %s", count, nodes, version)
	})
}

// finish checks all that was seen, in its order, and tells how long nodes had no Pod.
func (w *roll) finish() string {
	w.h.Helper()
	w.stop()
	w.done.Wait()
	slices.SortStableFunc(w.moments, func(a, b moment) int { return cmp.Compare(a.revision, b.revision) })
	r := &replay{nodes: map[string]*driverNode{}, pools: map[string]pool{}}
	for _, m := range w.moments {
		switch object := m.Object.(type) {
		case *corev1.Pod:
			r.pod(m.Type, object)
		case *resourcev1.ResourceSlice:
			r.slice(m.Type, object)
		}
	}
	require.Empty(w.h, r.wrong)
	return fmt.Sprintf("%d events; longest time without a driver Pod %s; %d slices were wiped meanwhile", len(w.moments), r.longest, r.wiped)
}

// pool are the slices of a node by name.
type pool map[string]*resourcev1.ResourceSlice

func see(pools map[string]pool, kind watch.EventType, slice *resourcev1.ResourceSlice) pool {
	of := pools[*slice.Spec.NodeName]
	if of == nil {
		of = pool{}
		pools[*slice.Spec.NodeName] = of
	}
	if kind == watch.Deleted {
		delete(of, slice.Name)
	} else {
		of[slice.Name] = slice
	}
	return of
}

// versions are those of the devices, where the pool is complete.
func (p pool) versions() []string {
	var all []string
	for _, slice := range harness.Newest(p) {
		all = append(all, versionsOf(slice)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func versionsOf(slice *resourcev1.ResourceSlice) []string {
	var all []string
	for _, device := range slice.Spec.Devices {
		all = append(all, *device.Attributes["version"].StringValue)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// replay goes through what happened, and notes what must not.
type replay struct {
	nodes   map[string]*driverNode
	pools   map[string]pool
	wrong   []string
	longest time.Duration
	wiped   int
}

// driverNode is what is known of the driver Pod of a node.
type driverNode struct {
	// version is that of the last Pod that was Ready.
	version string
	// lost is when this Pod was deleted, or zero while it is there, and wiped reports whether
	// slices have gone since.
	lost  time.Time
	wiped bool
}

func (r *replay) node(name string) *driverNode {
	if r.nodes[name] == nil {
		r.nodes[name] = &driverNode{}
	}
	return r.nodes[name]
}

func (r *replay) pod(kind watch.EventType, pod *corev1.Pod) {
	node := r.node(pod.Spec.NodeName)
	if pod.DeletionTimestamp != nil || kind == watch.Deleted {
		if node.lost.IsZero() && pod.DeletionTimestamp != nil {
			node.lost = pod.DeletionTimestamp.Add(-time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second)
		}
		return
	}
	i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
	if i < 0 {
		return
	}
	if !node.lost.IsZero() {
		without := pod.Status.Conditions[i].LastTransitionTime.Sub(node.lost)
		r.longest = max(r.longest, without)
		if node.wiped && without < wipeDelay {
			r.wrong = append(r.wrong, fmt.Sprintf("the slices of node %s went, which had no Pod for %s only", pod.Spec.NodeName, without))
		}
	}
	_, tag, _ := strings.Cut(pod.Spec.Containers[0].Image, ":")
	*node = driverNode{version: tag}
}

func (r *replay) slice(kind watch.EventType, slice *resourcev1.ResourceSlice) {
	name := *slice.Spec.NodeName
	node, pool := r.node(name), see(r.pools, kind, slice)
	switch versions := versionsOf(slice); {
	case kind == watch.Deleted && node.lost.IsZero():
		r.wrong = append(r.wrong, fmt.Sprintf("slice %s went while the Pod of node %s was Ready", slice.Name, name))
	case kind == watch.Deleted:
		node.wiped = true
		r.wiped++
	case !slices.Equal(versions, []string{node.version}):
		r.wrong = append(r.wrong, fmt.Sprintf("slice %s was written with devices of %v, the last Pod that was Ready on node %s is of %q", slice.Name, versions, name, node.version))
	}
	if versions := pool.versions(); len(versions) > 1 {
		r.wrong = append(r.wrong, fmt.Sprintf("the pool of node %s is complete with devices of %v", name, versions))
	}
}
