package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/controller/loop"
	"github.com/kwok-dra/kwok-dra/internal/controller/shard"
	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/root"
	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubeletmetrics"
	"github.com/kwok-dra/kwok-dra/internal/observe"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
)

// WipeDelay is how long a driver may be gone before its slices are deleted.
const WipeDelay = lifecycle.WipeDelay

// Kubelets stand in for the kubelets of the fake nodes that this replica acts for, as soon as there
// is a directory for their plugins.
type Kubelets struct {
	Options
	registry

	metrics *metrics
	loop    *loop.Loop[string]
	// nodeChanged and podChanged are the callbacks of OnChange.
	nodeChanged func(name string)
	podChanged  func(key types.NamespacedName)
	// beside runs beside each node.
	beside []func(ctx context.Context, node, folder string)
}

// Options configure Kubelets. All but Owner, Recorder, Directory and KubeletMetrics are required.
type Options struct {
	Client kubernetes.Interface
	Config *config.Store
	// The caller runs Caches and Owner.
	Caches *observe.Caches
	Owner  *shard.Owner
	// Recorder, if set, writes an event on each Node that cannot serve real drivers.
	Recorder record.EventRecorder
	// Directory holds the folders of the nodes. It overrides pluginsDir of the configuration.
	Directory string
	// WipeDelay is the constant WipeDelay, except in tests.
	WipeDelay time.Duration
	// KubeletMetrics, if set, records calls of drivers under the kubelet's metric names.
	KubeletMetrics *kubeletmetrics.Metrics
}

// New makes Kubelets; Run starts them.
func New(o Options) *Kubelets {
	k := &Kubelets{
		Options: o, registry: newRegistry(),
		nodeChanged: func(string) {}, podChanged: func(types.NamespacedName) {},
	}
	k.metrics = newMetrics(k.countPlugins, o.KubeletMetrics)
	k.loop = loop.New("kubelets", k.reconcileNode)
	o.Caches.Nodes.Handle(func(name string, _, _ *observe.Node) { k.enqueueNode(name) })
	o.Config.OnChange(k.enqueueNodes)
	o.Owner.OnChange(k.enqueueNode, k.enqueueNodes)
	return k
}

// OnChange calls node when plugins of a node come, go or report health, and pod when the drivers
// have answered a Call for a Pod. Call OnChange before Run.
func (k *Kubelets) OnChange(node func(name string), pod func(key types.NamespacedName)) {
	k.nodeChanged, k.podChanged = dampCalls(nodeEventInterval, node), pod
}

// RunBeside has a function run for each node that has a folder, until the node's context ends. Call RunBeside before Run.
func (k *Kubelets) RunBeside(run func(ctx context.Context, node, folder string)) {
	k.beside = append(k.beside, run)
}

// Metrics collects the metrics of plugins.
func (k *Kubelets) Metrics() prometheus.Collector { return k.metrics.all }

// CheckHealth returns an error if the worker loop is stuck.
func (k *Kubelets) CheckHealth() error { return k.loop.CheckHealth() }

// Run serves real drivers until ctx ends, with the given number of workers for nodes. It returns once
// everything that it started has stopped.
func (k *Kubelets) Run(ctx context.Context, workers int) {
	cache.WaitFor(ctx, "", k.Caches.Synced()...)
	k.enqueueNodes()
	k.loop.Run(ctx, workers)
	for _, name := range k.runningNames() {
		k.stopNode(name) // ctx has ended, so all nodes are stopping already
	}
}

// pluginsDirectory is the directory that is configured now, or "".
func (k *Kubelets) pluginsDirectory() string {
	if set := k.Config.Current(); k.Directory == "" && set != nil {
		return set.PluginsDir
	}
	return k.Directory
}

// Enabled reports whether real drivers can register, which takes a directory.
func (k *Kubelets) Enabled() bool { return k.pluginsDirectory() != "" }

// enqueueNode queues a node that has a kubelet or can get one.
func (k *Kubelets) enqueueNode(name string) {
	if k.Enabled() || k.runningNode(name) != nil {
		k.loop.Add(name)
	}
}

// allFolders is the key that lists the folders of all nodes. No node has this name.
const allFolders = ""

// enqueueNodes queues all nodes, and all names that have a folder. It reads no files itself, since the
// configuration store waits for it.
func (k *Kubelets) enqueueNodes() {
	for _, name := range k.Caches.Nodes.Keys() {
		k.enqueueNode(name)
	}
	for _, name := range append(k.runningNames(), allFolders) {
		k.loop.Add(name)
	}
}

// enqueueFolders queues the names that have a folder.
func (k *Kubelets) enqueueFolders(directory string) error {
	if directory == "" {
		return nil
	}
	roots, err := root.Directory(directory).List()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return loop.Terminal(err) // each node reports it when it starts
	}
	for _, r := range roots {
		k.enqueueNode(r.Name)
	}
	return nil
}

// reconcileNode gives a node a folder and a kubelet that watches it, for as long as the Node exists and
// this replica acts for it. What was read of the folder ends with that ownership: another replica may
// have changed the folder since.
func (k *Kubelets) reconcileNode(ctx context.Context, name string) error {
	directory := k.pluginsDirectory()
	if name == allFolders {
		return k.enqueueFolders(directory)
	}
	fake, running, isOwned := k.Caches.Nodes.Get(name), k.runningNode(name), k.Owner.Acts(name, true)
	if running != nil && (!isOwned || running.source.directory != directory || running.claims.IsOutdated()) {
		k.stopNode(name)
		running = nil
	}
	if fake == nil && directory != "" {
		return k.retireNode(ctx, name, root.Directory(directory))
	}
	k.forgetAbsence(name)
	switch {
	case directory == "" || !isOwned:
		k.forgetFailure(name)
		return nil
	case running != nil:
		return running.applyConditions(ctx, fake)
	}
	started, err := k.startNode(ctx, directory, fake)
	if failed, ok := errors.AsType[*failure](err); ok {
		k.reportFailure(ctx, fake, failed)
		k.loop.AddAfter(name, startRetryInterval)
		return nil
	}
	if err != nil {
		return err
	}
	k.addRunning(started)
	k.nodeChanged(name) // Pods that ended meanwhile wait for the node
	return nil
}

// retireNode stops the kubelet of a deleted Node and removes its folder, once the Node has been gone for
// WipeDelay and no plugin listens any more. A driver that keeps running while its Node is registered
// again stays connected, as with a kubelet.
func (k *Kubelets) retireNode(ctx context.Context, name string, directory root.Directory) error {
	k.forgetFailure(name)
	folder, err := directory.Find(name)
	if err != nil || folder == nil { // it does not say whose it is, or it does not exist
		k.stopNode(name)
		k.forgetAbsence(name)
		return loop.Terminal(err)
	}
	live, err := k.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	switch {
	case err == nil && k.Caches.Nodes.Fake(live): // the cache is going to have it
		return nil
	case err == nil: // no longer fake, or another replica's
		k.stopNode(name)
		k.forgetAbsence(name)
		return nil
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("get node %s: %w", name, err)
	}
	left := k.WipeDelay - time.Since(k.recordAbsence(name))
	if left <= 0 && folder.HasPlugin(ctx) {
		left = k.WipeDelay
	}
	if left > 0 {
		k.loop.AddAfter(name, left)
		return nil
	}
	k.stopNode(name)
	k.forgetAbsence(name)
	klog.FromContext(ctx).V(2).Info("Removing the folder of the deleted node", "node", name, "path", folder.Path)
	return folder.Remove()
}
