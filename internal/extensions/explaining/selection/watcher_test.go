package selection

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/observe"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
)

const carrier = "test"

// world is a Watcher at work.
type world struct {
	t        *testing.T
	client   *fake.Clientset
	store    *config.Store
	log      ktesting.Buffer
	reported map[string]string
	looks    int
}

func start(t *testing.T, objects ...runtime.Object) *world {
	t.Helper()
	w := &world{t: t, client: fake.NewClientset(objects...), store: config.NewStore(carrier)}
	managed := &lifecycle.ManagedNodes{}
	require.NoError(t, managed.Complete())
	caches := observe.New(w.client, managed)
	watcher := NewWatcher(w.store, caches.Nodes, nil, func(byTemplate map[string]string) {
		w.reported = byTemplate
		w.looks++
	})
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	w.log = logger.GetSink().(ktesting.Underlier).GetBuffer()
	ctx, cancel := context.WithCancel(t.Context())
	var done []chan struct{}
	logged := func(ctx context.Context) { watcher.Run(klog.NewContext(ctx, logger)) }
	for _, run := range []func(context.Context){caches.Run, logged} {
		ended := make(chan struct{})
		done = append(done, ended)
		go func() {
			defer close(ended)
			run(ctx)
		}()
	}
	t.Cleanup(func() {
		cancel()
		for _, ended := range done {
			<-ended
		}
	})
	return w
}

// take puts templates in force.
func (w *world) take(terms map[string]string) {
	w.t.Helper()
	require.NoError(w.t, w.store.Replace(carrier, documents(w.t, terms)))
	w.settle()
}

func (w *world) settle() {
	time.Sleep(2 * (settlePeriod + minCheckInterval))
	synctest.Wait()
}

// create and update change the nodes of the cluster.
func (w *world) create(node *corev1.Node) {
	_, err := w.client.CoreV1().Nodes().Create(w.t.Context(), node, metav1.CreateOptions{})
	require.NoError(w.t, err)
	w.settle()
}

func (w *world) update(node *corev1.Node) {
	_, err := w.client.CoreV1().Nodes().Update(w.t.Context(), node, metav1.UpdateOptions{})
	require.NoError(w.t, err)
	w.settle()
}

// TestWatcher tells of a template that selects no node when the nodes are known,
// and again only what is nearer.
func TestWatcher(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		w.take(map[string]string{"h100": h100})
		require.Empty(t, w.log.String(), "there are no nodes yet")
		require.Empty(t, w.reported)

		w.create(node("t4-0", instanceType+"=g4dn.xlarge"))
		require.Equal(t, "template h100 selects 0 of 1 nodes: node.kubernetes.io/instance-type is g4dn.xlarge, must be p5.48xlarge (node t4-0)", w.reported["h100"])
		w.create(node("t4-1", instanceType+"=g4dn.xlarge"))
		require.Contains(t, w.reported["h100"], "0 of 2 nodes")
		require.Len(t, w.log.Data(), 1, "it is no nearer")
		w.create(node("gpu-0", instanceType+"=p5.49xlarge"))
		require.Contains(t, w.reported["h100"], "instance-type is p5.49xlarge")
		require.Len(t, w.log.Data(), 2)
		require.Contains(t, w.log.String(), `A template selects no node template="h100" nodes=3 nearestMiss="node.kubernetes.io/instance-type is p5.49xlarge, must be p5.48xlarge (node gpu-0)"`)

		looks := w.looks
		w.settle()
		require.Equal(t, looks, w.looks, "nothing has changed")

		w.update(node("gpu-0", instanceType+"=p5.48xlarge"))
		require.Empty(t, w.reported)
		w.update(node("gpu-0", instanceType+"=p5.49xlarge"))
		require.Contains(t, w.reported["h100"], "0 of 3 nodes")
		require.Len(t, w.log.Data(), 2, "it was told")
		w.take(map[string]string{"h100": h100})
		require.Len(t, w.log.Data(), 3, "another version of the template")
	})
}

// TestWatcherLooksSeldom has many changes be one look.
func TestWatcherLooksSeldom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		w.take(map[string]string{"h100": h100})
		before := w.looks
		for range 100 {
			_, err := w.client.CoreV1().Nodes().Create(t.Context(), node("n", "zone=a"), metav1.CreateOptions{})
			require.NoError(t, err)
			require.NoError(t, w.client.CoreV1().Nodes().Delete(t.Context(), "n", metav1.DeleteOptions{}))
			time.Sleep(100 * time.Millisecond)
		}
		w.settle()
		require.LessOrEqual(t, w.looks-before, 3)
	})
}
