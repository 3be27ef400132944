package computedomains

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
	"github.com/kwok-dra/kwok-dra/internal/controller/shard"
	"github.com/kwok-dra/kwok-dra/internal/observe"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/internal/testing/apitest"
	"github.com/kwok-dra/kwok-dra/internal/testing/runtest"
)

// world is a Controller at work, in a bubble, on a server with Nodes, Pods and claims and one with NVIDIA's objects.
type world struct {
	*apitest.Server
	t      *testing.T
	nvidia *fake.FakeDynamicClient
	owner  *shard.Owner
	*Controller
	// announced are the nodes that OnChange was called with.
	announced map[string]bool
	// queuedCliques counts how often a clique was queued.
	queuedCliques atomic.Int64
	log           ktesting.Buffer
	stop          func()
}

// countedQueue counts what is added to a queue.
type countedQueue struct {
	workqueue.TypedRateLimitingInterface[cliqueKey]
	added *atomic.Int64
}

// Add implements workqueue.TypedInterface.
func (q countedQueue) Add(key cliqueKey) {
	q.added.Add(1)
	q.TypedRateLimitingInterface.Add(key)
}

func newWorld(t *testing.T, objects ...runtime.Object) *world {
	t.Helper()
	w := &world{t: t, Server: apitest.New(objects...)}
	w.Name = func(action clienttesting.Action) string {
		if patch, ok := action.(clienttesting.PatchActionImpl); ok {
			return fmt.Sprintf("patch %s %s %s", patch.Resource.Resource, patch.Name, patch.Subresource)
		}
		return ""
	}
	w.nvidia = fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		domainsResource: "ComputeDomainList", cliquesResource: "ComputeDomainCliqueList",
	})
	return w
}

func (w *world) start() {
	w.t.Helper()
	managed := &lifecycle.ManagedNodes{}
	require.NoError(w.t, managed.Complete())
	caches := observe.New(w.Server, managed)
	w.Controller = New(Options{Client: w.Server, Objects: w.nvidia, Caches: caches, Owner: w.owner})
	w.announced = map[string]bool{}
	w.OnChange(func(node string) { w.announced[node] = true })
	w.cliqueLoop.TypedRateLimitingInterface = countedQueue{w.cliqueLoop.TypedRateLimitingInterface, &w.queuedCliques}
	logger := ktesting.NewLogger(w.t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(0)))
	w.log = logger.GetSink().(ktesting.Underlier).GetBuffer()
	runs := []func(context.Context){caches.Run, func(ctx context.Context) { w.Run(ctx, 1) }}
	if w.owner != nil {
		runs = append(runs, w.owner.Run)
	}
	w.stop = runtest.InOrder(klog.NewContext(w.t.Context(), logger), w.t, runs...)
	w.settle()
}

// settle waits until the Controller has nothing to do.
func (w *world) settle() {
	time.Sleep(time.Second)
	synctest.Wait()
}

// wrote returns the writes to Nodes and Pods since the last time.
func (w *world) wrote() []string {
	w.settle()
	return w.TakeCalls(func(string) bool { return true })
}

func (w *world) addDomain(uid string, ready ...string) {
	_, err := w.nvidia.Resource(domainsResource).Namespace("default").Create(w.t.Context(), newDomain(uid, ready...), metav1.CreateOptions{})
	require.NoError(w.t, err)
	w.settle()
}

// clique tells what a clique lists, or "absent".
func (w *world) clique(name string) string {
	w.t.Helper()
	w.settle()
	object, err := w.nvidia.Resource(cliquesResource).Namespace(driverNamespace).Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return "absent"
	}
	return tellClique(object)
}

// addDaemon plays the DaemonSet and kwok.
func (w *world) addDaemon(node, ip string, ready corev1.ConditionStatus, domain string) *corev1.Pod {
	daemon := newDaemon(node, ip, ready)
	w.Add(newClaim(daemon, daemonConfig, domain))
	w.Add(daemon)
	return daemon
}

// check is what the gate says of a worker.
func (w *world) check(worker *corev1.Pod, domain string) error {
	w.settle()
	claim := newClaim(worker, channelConfig, domain)
	node := apitest.Get[corev1.Node](w.Server, "", worker.Spec.NodeName)
	return w.Check(node, claim, &claim.Status.Allocation.Devices.Results[0])
}

var inBubble = runtest.InBubble

// TestDomain: a Pod with a channel has its node labeled, waits for the daemon on it, and starts when that is ready. A
// restart writes nothing, and the label goes with the Pod.
func TestDomain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		worker := newWorker("w", "n")
		w := newWorld(t, newTray("n", "rack.0"), newTray("m", "rack.0"), worker, newClaim(worker, channelConfig, "d1"))
		w.start()
		require.Empty(t, w.wrote())
		require.ErrorContains(t, w.check(worker, "d1"), "ComputeDomain not found: d1")

		w.addDomain("d1")
		require.Equal(t, []string{"patch nodes n "}, w.wrote())
		require.Equal(t, "d1", apitest.Get[corev1.Node](w.Server, "", "n").Labels[domainLabel])
		require.ErrorContains(t, w.check(worker, "d1"), "current node not ready in ComputeDomain")

		w.addDaemon("n", "10.0.0.1", corev1.ConditionFalse, "d1")
		require.Equal(t, []string{"patch pods daemon-on-n "}, w.wrote())
		require.Equal(t, "n=10.0.0.1/0/NotReady", w.clique("d1.rack.0"))
		require.Error(t, w.check(worker, "d1"))
		clear(w.announced)
		apitest.Edit(w.Server, driverNamespace, "daemon-on-n", func(pod *corev1.Pod) { setReady(pod, corev1.ConditionTrue, corev1.ConditionTrue) })
		require.Equal(t, "n=10.0.0.1/0/Ready", w.clique("d1.rack.0"))
		require.Equal(t, map[string]bool{"n": true}, w.announced)
		require.NoError(t, w.check(worker, "d1"))

		w.stop()
		writes := len(w.nvidia.Actions())
		w.start()
		require.Empty(t, w.wrote())
		for _, action := range w.nvidia.Actions()[writes:] {
			require.Contains(t, []string{"list", "watch"}, action.GetVerb())
		}

		w.Remove(worker)
		require.Equal(t, []string{"patch nodes n "}, w.wrote())
		require.NotContains(t, apitest.Get[corev1.Node](w.Server, "", "n").Labels, domainLabel)
	})
}

// TestFailures: a daemon that is not ready, stops or comes back elsewhere says so in its clique, and so does one whose
// node was lost.
func TestFailures(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newTray("n", "rack.0"), newTray("m", "rack.0"))
		w.start()
		first := w.addDaemon("n", "10.0.0.1", corev1.ConditionTrue, "d1")
		require.Equal(t, "n=10.0.0.1/0/Ready", w.clique("d1.rack.0"))
		w.addDaemon("m", "10.0.0.2", corev1.ConditionTrue, "d1")
		require.Equal(t, "n=10.0.0.1/0/Ready m=10.0.0.2/1/Ready", w.clique("d1.rack.0"))
		w.wrote()

		apitest.Edit(w.Server, "", "n", func(node *corev1.Node) { node.Status.Conditions[0].Status = corev1.ConditionUnknown })
		apitest.Edit(w.Server, driverNamespace, "daemon-on-n", func(pod *corev1.Pod) { setReady(pod, corev1.ConditionFalse, corev1.ConditionTrue) })
		require.Equal(t, "n=10.0.0.1/0/NotReady m=10.0.0.2/1/Ready", w.clique("d1.rack.0"))
		apitest.Edit(w.Server, "", "n", func(node *corev1.Node) { node.Status.Conditions[0].Status = corev1.ConditionTrue })
		require.Equal(t, "n=10.0.0.1/0/Ready m=10.0.0.2/1/Ready", w.clique("d1.rack.0"))

		require.Empty(t, w.wrote())

		w.Remove(first)
		require.Equal(t, "m=10.0.0.2/1/Ready", w.clique("d1.rack.0"))
		replaced := newDaemon("n", "10.0.0.3", corev1.ConditionTrue)
		replaced.UID = "another"
		w.Add(replaced)
		require.Equal(t, "m=10.0.0.2/1/Ready n=10.0.0.3/0/Ready", w.clique("d1.rack.0"))
	})
}

// TestNodeWithoutFabric: its daemon names no clique, and the controller reads the daemon's readiness from its Pod.
func TestNodeWithoutFabric(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		node := newTray("n", "")
		delete(node.Labels, fabricLabel)
		w := newWorld(t, node)
		w.start()
		w.addDaemon("n", "10.0.0.1", corev1.ConditionTrue, "d1")
		require.Equal(t, []string{"patch pods daemon-on-n "}, w.wrote())
		named, isNamed := apitest.Get[corev1.Pod](w.Server, driverNamespace, "daemon-on-n").Labels[cliqueLabel]
		require.True(t, isNamed)
		require.Empty(t, named)
		require.Equal(t, "absent", w.clique("d1."))

		worker := newWorker("w", "n")
		w.addDomain("d1")
		require.Error(t, w.check(worker, "d1"))
		_, err := w.nvidia.Resource(domainsResource).Namespace("default").Update(t.Context(), newDomain("d1", "n"), metav1.UpdateOptions{})
		require.NoError(t, err)
		require.NoError(t, w.check(worker, "d1"))
	})
}

// TestCheck: a channel that cannot be prepared yet is tried for as long as the plugin tries it. One of another namespace
// fails at once.
func TestCheck(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newTray("n", "rack.0"))
		w.start()
		w.addDomain("d1")
		worker := newWorker("w", "n")
		pending, isPending := errors.AsType[*plan.Pending](w.check(worker, "d1"))
		require.True(t, isPending)
		require.Equal(t, prepareTimeout, pending.Timeout)
		require.EqualError(t, pending, "NodePrepareResources failed for ResourceClaim of-w: error preparing devices for claim "+
			"'default/of-w:uid-of-of-w': prepare devices failed: error applying config: error asserting ComputeDomain Ready: current node not ready in ComputeDomain")

		stranger := newWorker("w", "n")
		stranger.Namespace = "elsewhere"
		failure, isFailure := errors.AsType[*plan.Failure](w.check(stranger, "d1"))
		require.True(t, isFailure)
		require.ErrorContains(t, failure, "namespace is different")

		claim, taken := newClaim(worker, channelConfig, "d1"), newTray("n", "rack.0")
		taken.Labels[domainLabel] = "d2"
		require.ErrorContains(t, w.Check(taken, claim, &claim.Status.Allocation.Devices.Results[0]), "label already exists for a different ComputeDomain")

		misnamed := newTray("n", "Rack_1")
		failure, isFailure = errors.AsType[*plan.Failure](w.Check(misnamed, claim, &claim.Status.Allocation.Devices.Results[0]))
		require.True(t, isFailure)
		require.ErrorContains(t, failure, `error asserting ComputeDomain Ready: node n: label nvidia.com/gpu.clique: "Rack_1" cannot be in the name of a ComputeDomainClique: a lowercase RFC 1123 subdomain must consist of`)

		other := resourcev1.DeviceRequestAllocationResult{Driver: "gpu.nvidia.com"}
		require.NoError(t, w.Check(newTray("n", ""), newClaim(worker, channelConfig, "d1"), &other))
		require.NoError(t, w.Check(newTray("n", ""), newClaim(worker, daemonConfig, "d1"), new(newClaim(worker, daemonConfig, "d1").Status.Allocation.Devices.Results[0])))
	})
}

// TestStandby: a replica that acts for no node writes nothing.
func TestStandby(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		worker := newWorker("w", "n")
		w := newWorld(t, newTray("n", "rack.0"), worker, newClaim(worker, channelConfig, "d1"))
		w.owner = shard.New(shard.Options{Mode: shard.Lease, Client: apitest.New(), Host: "h", Namespace: "kube-system", Name: "kwok-dra"})
		w.start()
		w.addDomain("d1")
		w.addDaemon("n", "10.0.0.1", corev1.ConditionTrue, "d1")
		require.Empty(t, w.wrote())
		require.Equal(t, "absent", w.clique("d1.rack.0"))
	})
}

// TestFullClique: the log and the Pods with a channel on the node say that its daemon finds no place, once for each change.
func TestFullClique(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newTray("n", "rack.0"), newTray("o", "rack.0"))
		w.start()
		w.addDomain("d1")
		first := w.addDaemon("n", "10.0.0.1", corev1.ConditionTrue, "d1")
		require.Equal(t, "n=10.0.0.1/0/Ready", w.clique("d1.rack.0"))
		narrow, worker := newDaemon("o", "10.0.0.2", corev1.ConditionTrue), newWorker("w", "o")
		narrow.Spec.Containers[0].Env = []corev1.EnvVar{{Name: maxDaemonsVariable, Value: "1"}}
		w.Add(newClaim(narrow, daemonConfig, "d1"))
		w.Add(narrow)
		require.ErrorContains(t, w.check(worker, "d1"), "current node not ready in ComputeDomain: ComputeDomainClique d1.rack.0 is full: more nodes have the label nvidia.com/gpu.clique=rack.0 than")
		for _, status := range []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue} {
			apitest.Edit(w.Server, driverNamespace, "daemon-on-o", func(pod *corev1.Pod) { setReady(pod, status, status) })
			w.settle()
		}
		require.Equal(t, 1, strings.Count(w.log.String(), "The ComputeDomainClique is full"))

		w.Remove(first)
		require.Equal(t, "o=10.0.0.2/0/Ready", w.clique("d1.rack.0"))
		require.NoError(t, w.check(worker, "d1"))
	})
}

// TestNothingIsQueuedInVain: an update of a ComputeDomain is news for the nodes whose entries differ, and a Pod or a Node that
// changes in other ways is no news for a clique.
func TestNothingIsQueuedInVain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.start()
		w.addDomain("d1")
		for _, name := range []string{"n", "m"} {
			worker := newWorker("w-"+name, name)
			w.Add(newTray(name, "rack.0"))
			w.Add(newClaim(worker, channelConfig, "d1"))
			w.Add(worker)
			w.addDaemon(name, "10.0.0.1", corev1.ConditionTrue, "d1")
		}
		w.settle()
		clear(w.announced)
		_, err := w.nvidia.Resource(domainsResource).Namespace("default").Update(t.Context(), newDomain("d1", "n"), metav1.UpdateOptions{})
		require.NoError(t, err)
		w.settle()
		require.Equal(t, map[string]bool{"n": true}, w.announced)

		w.queuedCliques.Store(0)
		apitest.Edit(w.Server, "", "n", func(node *corev1.Node) { node.Labels["other"] = "label" })
		apitest.Edit(w.Server, "default", "w-n", func(pod *corev1.Pod) { pod.Labels = map[string]string{"other": "label"} })
		w.settle()
		require.Zero(t, w.queuedCliques.Load())
		apitest.Edit(w.Server, driverNamespace, "daemon-on-n", func(pod *corev1.Pod) { pod.Status.PodIP = "10.0.0.9" })
		w.settle()
		require.Positive(t, w.queuedCliques.Load())
		require.Contains(t, w.clique("d1.rack.0"), "n=10.0.0.9/")
	})
}

// TestManyRacks: a ComputeDomain over five racks has five full cliques, after two writes for each node.
func TestManyRacks(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const racks = 5
		w := newWorld(t)
		for i := range racks * defaultMaxDaemons {
			name := fmt.Sprintf("n-%d", i)
			worker := newWorker("w-"+name, name)
			w.Add(newTray(name, fmt.Sprintf("rack.%d", i/defaultMaxDaemons)))
			w.Add(newClaim(worker, channelConfig, "d1"))
			w.Add(worker)
			w.addDaemon(name, "10.0.0.1", corev1.ConditionTrue, "d1")
		}
		w.start()
		w.addDomain("d1")
		require.Len(t, w.wrote(), 2*racks*defaultMaxDaemons)
		for rack := range racks {
			require.Equal(t, defaultMaxDaemons, strings.Count(w.clique(fmt.Sprintf("d1.rack.%d", rack)), "/Ready"))
		}
	})
}
