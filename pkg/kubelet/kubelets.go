package kubelet

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
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

	mu    sync.Mutex
	nodes map[string]*node
}

// Options are what Kubelets work with. All but Owner, Directory and KubeletMetrics are required.
type Options struct {
	Client kubernetes.Interface
	Config *config.Store
	// Caches and Owner are run by the caller.
	Caches *observe.Caches
	Owner  *shard.Owner
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
		Options: o, nodes: map[string]*node{},
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

// enqueueAll looks at all nodes that there are, and at those that have a folder.
func (k *Kubelets) enqueueAll() {
	for _, name := range k.Caches.Nodes.Keys() {
		k.enqueue(name)
	}
	roots, err := root.Directory(k.directory()).List()
	if err != nil {
		return // there is none yet
	}
	for _, r := range roots {
		k.enqueue(r.Name)
	}
}

// reconcile has a node have a folder, and someone who looks into it, as long as it is there.
func (k *Kubelets) reconcile(ctx context.Context, name string) error {
	fake, known, directory := k.Caches.Nodes.Get(name), k.get(name), k.directory()
	if known != nil && (fake == nil || fake.UID != known.uid || known.directory != directory) {
		k.keep(name, nil)
		known.end()
		known = nil
	}
	switch {
	case directory == "":
		return nil
	case fake == nil:
		return k.remove(ctx, name, root.Directory(directory))
	case known != nil:
		known.observe(ctx, fake)
		return nil
	case !k.Owner.Acts(name, true):
		return nil
	}
	started, err := k.start(ctx, directory, fake)
	if err == nil {
		k.keep(name, started)
		k.nodeChanged(name) // Pods wait for it that have ended meanwhile
	}
	return err
}

// remove removes the folder of a node that is gone.
func (k *Kubelets) remove(ctx context.Context, name string, directory root.Directory) error {
	found, err := directory.Find(name)
	if found == nil || err != nil {
		return err
	}
	live, err := k.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	switch {
	case err == nil && live.UID == found.UID: // it is no fake one any more, or another replica's
		return nil
	case err != nil && !apierrors.IsNotFound(err):
		return fmt.Errorf("get node %s: %w", name, err)
	}
	klog.FromContext(ctx).V(2).Info("Removing the folder of the node, which is gone", "node", name, "path", found.Path)
	return found.Remove()
}

func (k *Kubelets) get(name string) *node {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.nodes[name]
}

// keep has the node of a name be this one, or none.
func (k *Kubelets) keep(name string, n *node) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if n == nil {
		delete(k.nodes, name)
	} else {
		k.nodes[name] = n
	}
}

// node returns what stands in for the kubelet of a node, or nil.
func (k *Kubelets) node(fake *corev1.Node) *node {
	if n := k.get(fake.Name); n != nil && n.uid == fake.UID {
		return n
	}
	return nil
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
