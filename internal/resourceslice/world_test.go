package resourceslice

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/controller/installation"
	"github.com/kwok-dra/kwok-dra/internal/controller/shard"
	"github.com/kwok-dra/kwok-dra/internal/extensions/driverpods"
	"github.com/kwok-dra/kwok-dra/internal/observe"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/internal/testing/configtest"
	"github.com/kwok-dra/kwok-dra/internal/testing/runtest"
)

// world is a Publisher at work on a server, in a bubble.
type world struct {
	*server
	t          *testing.T
	store      *config.Store
	managed    lifecycle.ManagedNodes
	owner      *shard.Owner
	recorder   *record.FakeRecorder
	caches     *observe.Caches
	driverPods *driverpods.Pods
	publisher  *Publisher
	// outcomes has those of the last reconciliation, by node or pool.
	outcomes sync.Map
	stop     func()
}

// previousVersion is an owner that records nothing.
func previousVersion() *shard.Owner { return shard.New(shard.Options{Mode: shard.None}) }

// newWorld starts a Publisher with the documents on a server with the objects.
// With no documents there is no configuration yet.
func newWorld(t *testing.T, documents string, objects ...runtime.Object) *world {
	t.Helper()
	w := &world{server: newServer(objects...), t: t, store: config.NewStore("test")}
	if documents != "" {
		configtest.Replace(t, w.store, documents)
	}
	w.start()
	return w
}

// start starts a Publisher, as a restart of the sidecar does after stop.
func (w *world) start() {
	w.t.Helper()
	require.NoError(w.t, w.managed.Complete())
	owner := w.owner
	if owner == nil {
		owner = shard.New(shard.Options{Mode: shard.None, Installation: installation.New(types.NamespacedName{Namespace: "kube-system", Name: "kwok-dra"}, true, w.managed.Identity())})
	}
	w.recorder = record.NewFakeRecorder(1000)
	caches := observe.New(w.server, &w.managed)
	w.driverPods = driverpods.New(w.server, w.store, caches.Slices)
	publisher := New(Options{
		Client: w.server, Config: w.store, Caches: caches, Owner: owner, Recorder: w.recorder, DriverPods: w.driverPods,
		Outcomes: func(of string, templates map[string]Outcome) { w.outcomes.Store(of, templates) },
	})
	w.caches, w.publisher = caches, publisher
	w.stop = runtest.InOrder(runtest.QuietContext(w.t), w.t, caches.Run, w.driverPods.Run, func(ctx context.Context) { publisher.Run(ctx, 4) })
}

// wrote checks which writes there were since the last call, and nothing else
// even if time passes, but that the API server is asked again for what it
// dropped. "create 2, patch 1" are the wants.
func (w *world) wrote(want string) {
	w.t.Helper()
	synctest.Wait()
	w.requireWrites(want)
	time.Sleep(10 * time.Minute)
	synctest.Wait() // for what is due at this very moment
	later := w.takeWrites()
	delete(later, "dry-run")
	require.Empty(w.t, later)
}

func (w *world) requireWrites(want string) {
	w.t.Helper()
	wanted := map[string]int{}
	for word := range strings.SplitSeq(want, ", ") {
		var verb string
		var count int
		if n, _ := fmt.Sscanf(word, "%s %d", &verb, &count); n == 2 {
			wanted[verb] = count
		}
	}
	require.Equal(w.t, wanted, w.takeWrites())
}

func (w *world) setNode(name string, change func(*corev1.Node)) {
	w.t.Helper()
	node, err := w.CoreV1().Nodes().Get(w.t.Context(), name, metav1.GetOptions{})
	require.NoError(w.t, err)
	node = node.DeepCopy()
	change(node)
	_, err = w.CoreV1().Nodes().Update(w.t.Context(), node, metav1.UpdateOptions{})
	require.NoError(w.t, err)
	synctest.Wait()
}

func (w *world) addNode(node *corev1.Node) {
	w.t.Helper()
	_, err := w.CoreV1().Nodes().Create(w.t.Context(), node, metav1.CreateOptions{})
	require.NoError(w.t, err)
	synctest.Wait()
}

func (w *world) deleteNode(name string) {
	w.t.Helper()
	require.NoError(w.t, w.CoreV1().Nodes().Delete(w.t.Context(), name, metav1.DeleteOptions{}))
	synctest.Wait()
}

func (w *world) events() []string {
	var events []string
	for len(w.recorder.Events) > 0 {
		events = append(events, <-w.recorder.Events)
	}
	return events
}

// outcome is the state of a template on a node, or of its shared pool.
func (w *world) outcome(of, template string) Outcome {
	templates, _ := w.outcomes.Load(of)
	return templates.(map[string]Outcome)[template]
}

func setReady(status corev1.ConditionStatus) func(*corev1.Node) {
	return func(node *corev1.Node) { node.Status.Conditions[0].Status = status }
}

const (
	twoSlices = "{name: gpu, count: 129}"
	oneOfEach = "{name: gpu, attributes: {zone: \"{{ or .Node.metadata.labels.zone `none` }}\"}}"
)

// inBubble runs a test in a bubble of its own.
var inBubble = runtest.InBubble
