package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/pkg/config"
	"github.com/kwok-dra/kwok-dra/pkg/kubelet/root"
	"github.com/kwok-dra/kwok-dra/pkg/kubeletmetrics"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/loop"
	"github.com/kwok-dra/kwok-dra/pkg/observe"
	"github.com/kwok-dra/kwok-dra/pkg/shard"
)

// WipeDelay is how long drivers have to come back before their slices are deleted.
const WipeDelay = lifecycle.WipeDelay

// Kubelets stand in for the kubelets of the fake nodes that this replica acts for, where there is
// a directory for their plugins.
type Kubelets struct {
	Options
	metrics *metrics
	loop    *loop.Loop[string]
	// nodeChanged and podChanged are told as OnChange says.
	nodeChanged func(name string)
	podChanged  func(key types.NamespacedName)

	mu sync.Mutex
	// nodes are those that this replica acts for and that could be started. reconcile ends them.
	nodes map[string]*node
	// failures are of nodes that this replica acts for and that could not be started. reconcile ends
	// them too.
	failures map[string]*failure
	// gone is since when folders have no Node. reconcile ends an entry with the folder, or when there
	// is a Node again.
	gone map[string]time.Time
}

// Options are what Kubelets work with. All but Owner, Recorder, Directory and KubeletMetrics are
// required.
type Options struct {
	Client kubernetes.Interface
	Config *config.Store
	// Caches and Owner are run by the caller.
	Caches *observe.Caches
	Owner  *shard.Owner
	// Recorder, if there is one, writes events on Nodes that cannot serve real drivers, and on their Pods.
	Recorder record.EventRecorder
	// Directory has the folders of the nodes. It wins over pluginsDir of the configuration.
	Directory string
	// WipeDelay is usually WipeDelay.
	WipeDelay time.Duration
	// KubeletMetrics, if there are any, are told of calls of drivers.
	KubeletMetrics *kubeletmetrics.Metrics
}

// New makes Kubelets; Run starts them.
func New(o Options) *Kubelets {
	k := &Kubelets{
		Options: o, nodes: map[string]*node{}, failures: map[string]*failure{}, gone: map[string]time.Time{},
		nodeChanged: func(string) {}, podChanged: func(types.NamespacedName) {},
	}
	k.metrics = newMetrics(k.registered, o.KubeletMetrics)
	k.loop = loop.New("kubelets", k.reconcile)
	o.Caches.Nodes.Handle(func(name string, _, _ *observe.Node) { k.enqueue(name) })
	o.Config.OnChange(k.enqueueAll)
	o.Owner.OnChange(k.enqueue, k.enqueueAll)
	return k
}

// OnChange calls node when plugins of a node come, go or tell of devices, and pod when the drivers
// have answered a Call for a Pod. Call it before Run.
func (k *Kubelets) OnChange(node func(name string), pod func(key types.NamespacedName)) {
	k.nodeChanged, k.podChanged = node, pod
}

// Metrics is the collector of the metrics of plugins.
func (k *Kubelets) Metrics() prometheus.Collector { return k.metrics.all }

// CheckHealth returns an error if the loop of the Kubelets is stuck.
func (k *Kubelets) CheckHealth() error { return k.loop.CheckHealth() }

// Run acts until ctx ends, with that many workers for nodes, and returns when all that it has
// started has stopped.
func (k *Kubelets) Run(ctx context.Context, workers int) {
	cache.WaitFor(ctx, "", k.Caches.Synced()...)
	k.enqueueAll()
	k.loop.Run(ctx, workers)
	k.mu.Lock()
	nodes := k.nodes
	k.nodes = map[string]*node{}
	k.mu.Unlock()
	for _, n := range nodes {
		n.end() // ctx has ended, and all of them are on their way
	}
}

// directory is the one that is wanted now, or "".
func (k *Kubelets) directory() string {
	if set := k.Config.Current(); k.Directory == "" && set != nil {
		return set.PluginsDir
	}
	return k.Directory
}

// Enabled reports whether there is a directory, and so real drivers can register.
func (k *Kubelets) Enabled() bool { return k.directory() != "" }

// enqueue looks at a node, if there is anything to look for.
func (k *Kubelets) enqueue(name string) {
	if k.Enabled() || k.get(name) != nil {
		k.loop.Add(name)
	}
}

// allFolders is the key under which the folders of all nodes are looked for, since none has that name.
const allFolders = ""

// enqueueAll looks at all nodes that there are, and at those that have a folder. It reads nothing
// itself: the configuration waits for it.
func (k *Kubelets) enqueueAll() {
	for _, name := range k.Caches.Nodes.Keys() {
		k.enqueue(name)
	}
	k.mu.Lock()
	running := slices.Collect(maps.Keys(k.nodes))
	k.mu.Unlock()
	for _, name := range append(running, allFolders) {
		k.loop.Add(name)
	}
}

// enqueueFolders looks at the nodes that have a folder.
func (k *Kubelets) enqueueFolders(directory string) error {
	if directory == "" {
		return nil
	}
	roots, err := root.Directory(directory).List()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return loop.Terminal(err) // each node says so when it is started
	}
	for _, r := range roots {
		k.enqueue(r.Name)
	}
	return nil
}

// reconcile has a node have a folder, and someone who looks into it, as long as it is there and this
// replica acts for it. What was read of the folder ends with that: others may have changed it since.
func (k *Kubelets) reconcile(ctx context.Context, name string) error {
	directory := k.directory()
	if name == allFolders {
		return k.enqueueFolders(directory)
	}
	fake, known, acts := k.Caches.Nodes.Get(name), k.get(name), k.Owner.Acts(name, true)
	if known != nil && (!acts || known.directory != directory || known.claims.IsOutdated()) {
		k.end(name)
		known = nil
	}
	if fake == nil && directory != "" {
		return k.retire(ctx, name, root.Directory(directory))
	}
	k.noteGone(name, false)
	switch {
	case directory == "" || !acts:
		k.forgetFailure(name)
		return nil
	case known != nil:
		return known.observe(ctx, fake)
	}
	started, err := k.start(ctx, directory, fake)
	if failed, ok := errors.AsType[*failure](err); ok {
		k.report(ctx, fake, failed)
		k.loop.AddAfter(name, startAgain)
		return nil
	}
	if err != nil {
		return err
	}
	k.forgetFailure(name)
	k.mu.Lock()
	k.nodes[name] = started
	k.mu.Unlock()
	k.nodeChanged(name) // Pods wait for it that have ended meanwhile
	return nil
}

// retire ends the kubelet of a node that is gone and removes the folder, once both are of no use any
// more: for WipeDelay there has been no Node of the name, and no plugin listens. A driver that runs
// while its Node is registered once more stays connected, as to a kubelet.
func (k *Kubelets) retire(ctx context.Context, name string, directory root.Directory) error {
	k.forgetFailure(name)
	found, err := directory.Find(name)
	if err != nil || found == nil { // it does not say whose it is, or it is gone
		k.end(name)
		k.noteGone(name, false)
		return loop.Terminal(err)
	}
	live, err := k.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	switch {
	case err == nil && k.Caches.Nodes.Fake(live): // the cache will show it
		return nil
	case err == nil: // it is no fake one any more, or another replica's
		k.end(name)
		k.noteGone(name, false)
		return nil
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("get node %s: %w", name, err)
	}
	left := k.WipeDelay - time.Since(k.noteGone(name, true))
	if left <= 0 && found.HasPlugin(ctx) {
		left = k.WipeDelay
	}
	if left > 0 {
		k.loop.AddAfter(name, left)
		return nil
	}
	k.end(name)
	k.noteGone(name, false)
	klog.FromContext(ctx).V(2).Info("Removing the folder of the node, which is gone", "node", name, "path", found.Path)
	return found.Remove()
}

// noteGone notes that there is no Node of a name, and returns since when; or that there is one.
func (k *Kubelets) noteGone(name string, isGone bool) (since time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	since, known := k.gone[name]
	switch {
	case !isGone:
		delete(k.gone, name)
	case !known:
		since = time.Now()
		k.gone[name] = since
	}
	return since
}

// end ends what stands in for the kubelet of a node, and waits for it.
func (k *Kubelets) end(name string) {
	known := k.get(name)
	if known == nil {
		return
	}
	k.mu.Lock()
	delete(k.nodes, name)
	k.mu.Unlock()
	known.end()
}

// get returns what stands in for the kubelet of a node, or nil.
func (k *Kubelets) get(name string) *node {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.nodes[name]
}

// registered counts the plugins that have registered.
func (k *Kubelets) registered() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := 0
	for _, n := range k.nodes {
		all += n.plugins.Len()
	}
	return all
}
