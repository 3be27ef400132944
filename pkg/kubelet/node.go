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

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/kubelet/claiminfo"
	"github.com/kwok-dra/kwok-dra/pkg/kubelet/plugin"
	"github.com/kwok-dra/kwok-dra/pkg/kubelet/root"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
)

// lookPeriod is how often the folder of a node is looked at (loopSleepDuration in
// pkg/kubelet/pluginmanager).
const lookPeriod = time.Second

// node stands in for the kubelet of one fake node.
type node struct {
	*Kubelets

	name string
	// uid is that of the Node, of which there may be several one after the other. It is of reconcile.
	uid types.UID
	// directory is the one that the folder is in, as it is configured.
	directory string
	root      *root.Root
	claims    *claiminfo.Cache
	plugins   *plugin.Set
	wipes     *wipes
	calls     *calls
	stop      context.CancelFunc
	running   sync.WaitGroup
	// lookFailure is why the last look for plugins failed. It is of run.
	lookFailure string

	mu    sync.Mutex
	state lifecycle.Plugin
	// restarted is when Stages have last restarted the kubelet. It begins anew with the next look.
	restarted  metav1.Time
	restarting bool
}

// start makes the folder of a node, and looks for plugins in it until ctx ends or the node is
// stopped.
func (k *Kubelets) start(ctx context.Context, directory string, fake *corev1.Node) (*node, error) {
	folder, err := k.open(directory, fake)
	if err != nil {
		return nil, err
	}
	claims, err := claiminfo.Open(filepath.Join(folder.Path, claiminfo.File))
	if err != nil {
		return nil, &failure{node: fake.Name, err: err, ofNode: true}
	}
	drivers, err := k.driversOf(ctx, fake.Name)
	if err != nil {
		return nil, err
	}
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithValues("node", fake.Name))
	ctx, stop := context.WithCancel(ctx)
	n := &node{Kubelets: k, name: fake.Name, uid: fake.UID, directory: directory, root: folder, claims: claims, stop: stop, restarted: restartedAt(fake)}
	n.wipes = &wipes{node: n, ctx: ctx, pending: map[string]context.CancelFunc{}}
	n.calls = &calls{node: n, ctx: ctx, byPod: map[types.UID]*call{}}
	n.plugins = plugin.NewSet(plugin.Options{
		Endpoint:      folder.Endpoint,
		Changed:       n.pluginChanged,
		HealthChanged: func(string) { k.nodeChanged(n.name) },
		Calls:         k.metrics.observe,
	})
	n.state = lifecycle.PluginOf(fake)
	n.running.Go(func() { n.run(ctx) })
	for driver := range drivers {
		// Unless it comes back, as after every start of a kubelet.
		n.wipes.schedule(driver) //nolint:contextcheck // it goes on as long as the node
	}
	return n, nil
}

// acts reports whether this replica acts for the node.
func (n *node) acts() bool { return n.Owner.Acts(n.name, true) }

// end stops all that belongs to a node, and waits for it.
func (n *node) end() {
	n.stop()
	n.running.Wait()
}

// run serves the sockets that are there.
func (n *node) run(ctx context.Context) {
	ticker := time.NewTicker(lookPeriod)
	defer ticker.Stop()
	sockets := plugin.NewSockets(n.plugins)
	defer sockets.Wait()
	for ctx.Err() == nil {
		if !n.acts() || n.claims.IsOutdated() {
			n.loop.Add(n.name) // what was read of the node ends
		}
		n.serve(ctx, sockets)
		n.calls.release() //nolint:contextcheck // calls go on as long as the node
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// serve looks for sockets, of which there are none for a kubelet that restarts.
func (n *node) serve(ctx context.Context, sockets *plugin.Sockets) {
	found, err := n.root.Sockets()
	if err != nil {
		if text := err.Error(); text != n.lookFailure {
			n.lookFailure = text
			klog.FromContext(ctx).Error(err, "Looking for DRA plugins failed, trying again")
		}
		return
	}
	n.lookFailure = ""
	if n.takeRestart() || n.pluginState() == lifecycle.PluginGone {
		found = nil
	}
	sockets.Sync(ctx, found)
}

// pluginChanged has the slices of a driver wiped that cannot be reached, and Pods look at their
// drivers again.
func (n *node) pluginChanged(driver string) {
	if n.plugins.Connected(driver) {
		n.wipes.cancel(driver)
	} else {
		n.wipes.schedule(driver)
	}
	n.nodeChanged(n.name)
}

func (n *node) pluginState() lifecycle.Plugin {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.state
}

// observe plays what Stages say of the node's kubelet and plugins. The Node may have been registered
// once more.
func (n *node) observe(ctx context.Context, fake *corev1.Node) error {
	if n.uid != fake.UID {
		if _, err := n.open(n.directory, fake); err != nil {
			return err
		}
		n.uid = fake.UID
	}
	n.mu.Lock()
	before, restarted := n.state, restartedAt(fake)
	n.state = lifecycle.PluginOf(fake)
	restart := !restarted.IsZero() && !restarted.Equal(&n.restarted)
	n.restarted, n.restarting = restarted, n.restarting || restart
	gone := n.state == lifecycle.PluginGone
	n.mu.Unlock()
	if restart {
		klog.FromContext(ctx).V(2).Info("Restarting the kubelet of the node", "node", n.name)
		n.claims.Restart()
	}
	if restart || gone && before != lifecycle.PluginGone {
		n.wipes.all()
	}
	return nil
}

// takeRestart reports, once, that the kubelet is to restart.
func (n *node) takeRestart() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	restart := n.restarting
	n.restarting = false
	return restart
}

// restartedAt is when Stages have last restarted the kubelet of a node, or zero.
func restartedAt(fake *corev1.Node) metav1.Time {
	for _, condition := range fake.Status.Conditions {
		if condition.Type == v1alpha1.KubeletRestarted && condition.Status == corev1.ConditionTrue {
			return condition.LastTransitionTime
		}
	}
	return metav1.Time{}
}
