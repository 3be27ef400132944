package claims

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/controller/shard"
	"github.com/kwok-dra/kwok-dra/internal/extensions/devicehealth"
	"github.com/kwok-dra/kwok-dra/internal/extensions/driverpods"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory/live"
	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubeletmetrics"
	"github.com/kwok-dra/kwok-dra/internal/observe"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/internal/testing/configtest"
	"github.com/kwok-dra/kwok-dra/internal/testing/runtest"
)

// world is a Controller at work on a server, in a bubble.
type world struct {
	*server
	t       *testing.T
	store   *config.Store
	managed lifecycle.ManagedNodes
	events  *eventLog
	// owner is run with the Controller, if there is one.
	owner      *shard.Owner
	controller *Controller
	measures   *kubeletmetrics.Metrics
	kubelets   interface {
		Kubelets
		live.Kubelets
	}
	gate Gate
	// source takes inventories of what the Controller knows.
	source *inventory.Source
	stop   func()
}

// newWorld starts a Controller with the documents on a server with the objects.
// With no documents there is no configuration yet.
func newWorld(t *testing.T, documents string, objects ...runtime.Object) *world {
	t.Helper()
	w := idleWorld(t, documents, objects...)
	w.start()
	return w
}

// idleWorld is one whose Controller has not been started. The drivers d and e have
// slices on the nodes n and m.
func idleWorld(t *testing.T, documents string, objects ...runtime.Object) *world {
	t.Helper()
	w := &world{
		server: newServer(objects...),
		t:      t,
		store:  config.NewStore("test"),
		events: &eventLog{},
		stop:   func() {},
	}
	for _, node := range []string{"n", "m"} {
		w.Add(newSlice("d", node))
		w.Add(newSlice("e", node))
	}
	if documents != "" {
		configtest.Replace(t, w.store, documents)
	}
	return w
}

// start starts a Controller, as a restart of the sidecar does after stop.
func (w *world) start() {
	w.t.Helper()
	require.NoError(w.t, w.managed.Complete())
	caches := observe.New(w.server, &w.managed)
	pods := driverpods.New(w.server, w.store, caches.Slices)
	health := &devicehealth.Server{}
	options := Options{Client: w.server, Config: w.store, Caches: caches, Owner: w.owner, Events: w.events, DriverPods: pods, Kubelets: w.kubelets, Gate: w.gate, DeviceHealth: health}
	if w.measures != nil {
		options.KubeletRecorder = kubeletRecorder{w.measures}
		w.measures.AllHaveTemplates = func(driver string) bool { return w.store.Current().HasDriver(driver) }
	}
	controller := New(options)
	w.controller = controller
	w.source = live.NewSource(live.Options{Config: w.store, Caches: caches, Preparer: controller, Kubelets: w.kubelets, TaintRules: noRules{}})
	runs := []func(context.Context){caches.Run, pods.Run, health.Run, func(ctx context.Context) { controller.Run(ctx, 4) }}
	if w.owner != nil {
		runs = append(runs, w.owner.Run)
	}
	w.stop = runtest.InOrder(runtest.QuietContext(w.t), w.t, runs...)
	synctest.Wait()
}

// kubeletRecorder gives the Controller the metrics of a kubelet.
type kubeletRecorder struct{ *kubeletmetrics.Metrics }

func (r kubeletRecorder) NewPod() PodRecorder { return r.Metrics.NewPod() }

// noRules are no DeviceTaintRules.
type noRules struct{}

func (noRules) Rules() (rules []inventory.TaintRule, unseen string) { return nil, "" }
func (noRules) Changes() uint64                                     { return 0 }

// takeCalls returns the calls since the last time: writes, or reads.
func (w *world) takeCalls(reads bool) []string {
	synctest.Wait()
	return w.TakeCalls(func(call string) bool {
		return reads == (strings.HasPrefix(call, "get") || strings.HasPrefix(call, "list"))
	})
}

// wrote checks the writes since the last time, in their order: "prepare c,
// ready p".
func (w *world) wrote(want string) {
	w.t.Helper()
	require.Equal(w.t, want, strings.Join(w.takeCalls(false), ", "))
}

// read checks the reads that are not those of the caches.
func (w *world) read(want string) {
	w.t.Helper()
	require.Equal(w.t, want, strings.Join(w.takeCalls(true), ", "))
}

// counted checks writes whose order does not matter.
func (w *world) counted(want map[string]int) {
	w.t.Helper()
	got := map[string]int{}
	for _, call := range w.takeCalls(false) {
		got[call]++
	}
	require.Equal(w.t, want, got)
}

// settled checks that nothing is written any more, whatever time passes.
func (w *world) settled() {
	w.t.Helper()
	time.Sleep(10 * time.Minute)
	w.wrote("")
}

// withdrawsAfter checks that the entries of c go after a time, and no sooner.
func (w *world) withdrawsAfter(delay time.Duration) {
	w.t.Helper()
	time.Sleep(delay - time.Millisecond)
	w.wrote("")
	time.Sleep(time.Millisecond)
	w.wrote("withdraw c")
}

// ready reports whether the containers of a Pod can be started.
func (w *world) ready(pod string) bool {
	return facts.ReadyToStart(w.pod(pod)) == corev1.ConditionTrue
}

// shown are the devices of a claim's entries.
func (w *world) shown(claim string) []string {
	var all []string
	for _, entry := range w.claim(claim).Status.Devices {
		all = append(all, entry.Driver+"/"+entry.Pool+"/"+entry.Device)
	}
	return all
}

// data are the data of a claim's first entry.
func (w *world) data(claim string) string {
	return string(w.claim(claim).Status.Devices[0].Data.Raw)
}

// eventLog is a broadcaster that keeps the events.
type eventLog struct {
	record.EventBroadcaster
	mu  sync.Mutex
	all []string
}

func (l *eventLog) NewRecorder(_ *runtime.Scheme, source corev1.EventSource) record.EventRecorderLogger {
	return eventRecorder{log: l, source: source}
}

type eventRecorder struct {
	record.EventRecorderLogger
	log    *eventLog
	source corev1.EventSource
}

func (r eventRecorder) Event(object runtime.Object, kind, reason, message string) {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	name := object.(metav1.Object).GetName()
	r.log.all = append(r.log.all, strings.Join([]string{r.source.Component, r.source.Host, name, kind, reason, message}, " | "))
}

// failures checks the events since the last time: kubelet's, of the Pod p, with
// these errors.
func (w *world) failures(want ...string) {
	w.t.Helper()
	synctest.Wait()
	w.events.mu.Lock()
	defer w.events.mu.Unlock()
	for i := range want {
		want[i] = "kubelet | n | p | Warning | FailedPrepareDynamicResources | Failed to prepare dynamic resources: prepare dynamic resources: " + want[i]
	}
	require.Equal(w.t, want, slices.Clone(w.events.all))
	w.events.all = nil
}

var errBroken = errors.New("connection refused")

// failing fails that many calls of one kind.
func failing(times int, call string, err error) func(string) error {
	return func(made string) error {
		if made != call || times == 0 {
			return nil
		}
		times--
		return err
	}
}

// loseAnswer has the API server execute the next call of a kind, and its answer get lost.
func (w *world) loseAnswer(call string) {
	serve := w.ReactionChain[0]
	w.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		handled, object, err := serve.React(action)
		if err == nil && operation(action) == call {
			call, object, err = "", nil, errBroken
		}
		return handled, object, err
	})
}

// inBubble runs a test in a bubble of its own.
var inBubble = runtest.InBubble
