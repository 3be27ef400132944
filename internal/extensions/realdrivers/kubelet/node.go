package kubelet

import (
	"context"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/claiminfo"
	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/plugin"
	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/root"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// socketScanInterval is how often a node's folder is scanned for sockets (loopSleepDuration in
// pkg/kubelet/pluginmanager).
const socketScanInterval = time.Second

// node stands in for the kubelet of one fake node.
type node struct {
	*Kubelets

	name string
	// source belongs to the worker that has the node's key.
	source  nodeSource
	root    *root.Root
	claims  *claiminfo.Cache
	plugins *plugin.Set
	wipes   *wipes
	calls   *calls
	stages  stagedState

	lifetime lifetime
}

// nodeSource is what a node was made from.
type nodeSource struct {
	// uid changes when the Node is deleted and registered again.
	uid types.UID
	// directory is the plugins directory as configured, before its links are resolved.
	directory string
}

// lifetime ends the goroutines of a node.
type lifetime struct {
	stop    context.CancelFunc
	running sync.WaitGroup
}

// stagedState is what Stages say of the node's kubelet and plugins.
type stagedState struct {
	mu     sync.Mutex
	plugin lifecycle.Plugin
	// restartedAt is the time of the last restart, and isRestartDue says that the sockets have not been
	// closed for it yet.
	restartedAt  metav1.Time
	isRestartDue bool
}

// startNode makes the folder of a node, and serves the plugins in it until ctx ends or the node is
// stopped.
func (k *Kubelets) startNode(ctx context.Context, directory string, fake *corev1.Node) (*node, error) {
	folder, err := openFolder(directory, fake)
	if err != nil {
		return nil, err
	}
	claims, err := claiminfo.Open(filepath.Join(folder.Path, claiminfo.File))
	if err != nil {
		return nil, &failure{node: fake.Name, err: err, isOfNode: true}
	}
	drivers, err := realDriversOn(ctx, k.Client, fake.Name)
	if err != nil {
		return nil, err
	}
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithValues("node", fake.Name))
	ctx, stop := context.WithCancel(ctx)
	n := &node{
		Kubelets: k, name: fake.Name, source: nodeSource{fake.UID, directory}, root: folder, claims: claims,
		stages: stagedState{plugin: lifecycle.PluginOf(fake), restartedAt: kubeletRestartTime(fake)}, lifetime: lifetime{stop: stop},
	}
	n.wipes = &wipes{node: n, ctx: ctx, pending: map[string]context.CancelFunc{}}
	n.calls = &calls{node: n, ctx: ctx, byPod: map[types.UID]*call{}}
	n.plugins = plugin.NewSet(plugin.Options{
		Endpoint:      folder.Endpoint,
		Changed:       n.pluginChanged,
		HealthChanged: func(string) { k.nodeChanged(n.name) },
		Calls:         k.metrics.observeCall,
	})
	n.lifetime.running.Go(func() { n.watchSockets(ctx) })
	for _, run := range k.beside {
		n.lifetime.running.Go(func() { run(ctx, fake.Name, folder.Path) })
	}
	for driver := range drivers {
		// A driver has to come back after each start of a kubelet.
		n.wipes.scheduleWipe(driver) //nolint:contextcheck // it goes on as long as the node
	}
	return n, nil
}

// isOwned reports whether this replica acts for the node.
func (n *node) isOwned() bool { return n.Owner.Acts(n.name, true) }

// watchSockets serves the plugins whose sockets are in the node's folder. A kubelet that restarts serves
// none.
func (n *node) watchSockets(ctx context.Context) {
	ticker := time.NewTicker(socketScanInterval)
	defer ticker.Stop()
	sockets := plugin.NewSockets(n.plugins)
	defer sockets.Wait()
	lastFailure := ""
	for ctx.Err() == nil {
		if !n.isOwned() || n.claims.IsOutdated() {
			n.loop.Add(n.name) // ends what was read of the node
		}
		found, err := n.root.Sockets()
		switch {
		case err == nil:
			lastFailure = ""
			if isRestarting := n.stages.consumeRestart(); isRestarting || n.stages.pluginState() == lifecycle.PluginGone {
				found = nil
			}
			sockets.Sync(ctx, found)
		case err.Error() != lastFailure:
			lastFailure = err.Error()
			klog.FromContext(ctx).Error(err, "Failed to look for DRA plugins; retrying")
		}
		n.calls.releaseGonePods() //nolint:contextcheck // calls go on as long as the node
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// pluginChanged schedules the wipe of the slices of a driver that cannot be reached, and requeues the
// node's Pods.
func (n *node) pluginChanged(driver string) {
	if n.plugins.Connected(driver) {
		n.wipes.cancelWipe(driver)
	} else {
		n.wipes.scheduleWipe(driver)
	}
	n.nodeChanged(n.name)
}

// applyConditions applies what Stages say of the node's kubelet and plugins. The Node may have been
// deleted and registered again since.
func (n *node) applyConditions(ctx context.Context, fake *corev1.Node) error {
	if n.source.uid != fake.UID {
		if _, err := openFolder(n.source.directory, fake); err != nil {
			return err
		}
		n.source.uid = fake.UID
	}
	isRestarting, isGone := n.stages.recordPlugin(lifecycle.PluginOf(fake), kubeletRestartTime(fake))
	if isRestarting {
		klog.FromContext(ctx).V(2).Info("Restarting the kubelet of the node", "node", n.name)
		n.claims.Restart()
	}
	if isRestarting || isGone {
		n.wipes.wipeAll()
	}
	return nil
}

// recordPlugin reports whether the kubelet restarts with this update, and whether plugins are gone since.
func (s *stagedState) recordPlugin(now lifecycle.Plugin, restartedAt metav1.Time) (isRestarting, isGone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	isGone = now == lifecycle.PluginGone && s.plugin != lifecycle.PluginGone
	isRestarting = !restartedAt.IsZero() && !restartedAt.Equal(&s.restartedAt)
	s.plugin, s.restartedAt, s.isRestartDue = now, restartedAt, s.isRestartDue || isRestarting
	return isRestarting, isGone
}

func (s *stagedState) pluginState() lifecycle.Plugin {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.plugin
}

// consumeRestart reports, once, that the kubelet is to restart.
func (s *stagedState) consumeRestart() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	isDue := s.isRestartDue
	s.isRestartDue = false
	return isDue
}

// kubeletRestartTime is when Stages last restarted the kubelet of a node, or zero.
func kubeletRestartTime(fake *corev1.Node) metav1.Time {
	for _, condition := range fake.Status.Conditions {
		if condition.Type == v1alpha1.KubeletRestarted && condition.Status == corev1.ConditionTrue {
			return condition.LastTransitionTime
		}
	}
	return metav1.Time{}
}
