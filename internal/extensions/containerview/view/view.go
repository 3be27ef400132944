package view

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/controller/loop"
	"github.com/kwok-dra/kwok-dra/internal/controller/shard"
	"github.com/kwok-dra/kwok-dra/internal/extensions/containerview"
	"github.com/kwok-dra/kwok-dra/internal/observe"
)

// Viewer maintains the views of the Pods on nodes that the kwok beside it may manage.
type Viewer struct {
	Options
	loop   *loop.Loop[types.NamespacedName]
	writer *writer

	mu sync.Mutex
	// kept are the folders of the directory that was configured last.
	kept *folders
}

// Options are what a Viewer works with. All but Owner and Directory are required.
type Options struct {
	Client dynamic.Interface
	Config *config.Store
	// Caches and Owner are run by the caller.
	Caches *observe.Caches
	Owner  *shard.Owner
	// Drivers answers for the drivers of a Pod's node. It returns nil while they are not known.
	Drivers func(set *config.Set, node *corev1.Node) containerview.Drivers
	// Shared is the directory of real drivers, or "".
	Shared func() string
	// Directory is shared with kwok. It wins over containerView of the configuration.
	Directory string
}

// New makes a Viewer; Run starts it. Without a directory it does nothing.
func New(o Options) *Viewer {
	v := &Viewer{Options: o, writer: &writer{client: o.Client}}
	v.loop = loop.New("views", v.reconcilePod)
	o.Config.OnChange(v.enqueuePods)
	o.Owner.OnChange(v.enqueueNode, v.enqueuePods)
	v.addHandlers()
	return v
}

func (v *Viewer) addHandlers() {
	v.Caches.Pods.Handle(cache.TypedResourceEventHandlerFuncs[*observe.Pod]{
		AddFunc:    v.enqueuePod,
		UpdateFunc: func(_, pod *observe.Pod) { v.enqueuePod(pod) },
		DeleteFunc: func(deleted cache.DeletedObject[*observe.Pod]) {
			if v.isEnabled() {
				v.loop.Add(types.NamespacedName(deleted.GetObjectName()))
			}
		},
	})
	v.Caches.Nodes.Handle(func(name string, old, now *observe.Node) {
		if old == nil || now == nil {
			v.enqueueNode(name)
		}
	})
	v.Caches.Claims.Handle(cache.TypedResourceEventHandlerFuncs[*observe.Claim]{
		AddFunc: v.enqueueUsers, // the cache of claims may be behind that of Pods
		UpdateFunc: func(old, claim *observe.Claim) {
			if old.Allocated != claim.Allocated {
				v.enqueueUsers(claim)
			}
		},
	})
}

// CheckHealth returns an error if the Viewer's loop is stuck.
func (v *Viewer) CheckHealth() error { return v.loop.CheckHealth() }

// Run acts until ctx ends, with that many workers.
func (v *Viewer) Run(ctx context.Context, workers int) {
	// Until the leases are known, no node counts as ours, and all folders would be removed.
	cache.WaitFor(ctx, "", slices.Concat(v.Caches.Synced(), v.Owner.Synced())...)
	v.enqueuePods()
	v.loop.Run(ctx, workers)
}

// wantedDirectory returns the configured directory, or "".
func (v *Viewer) wantedDirectory() string {
	if set := v.Config.Current(); v.Directory == "" && set != nil {
		return set.ContainerView
	}
	return v.Directory
}

func (v *Viewer) isEnabled() bool { return v.wantedDirectory() != "" }

func (v *Viewer) enqueuePod(pod *observe.Pod) {
	if pod.HasClaims() && v.isEnabled() {
		v.loop.Add(observe.Key(pod))
	}
}

func (v *Viewer) enqueueNode(name string) {
	for _, pod := range v.Caches.Pods.On(name) {
		v.enqueuePod(pod)
	}
}

func (v *Viewer) enqueueUsers(claim *observe.Claim) {
	for _, pod := range v.Caches.Pods.Using(observe.Key(claim)) {
		v.enqueuePod(pod)
	}
}

// allFolders is the key that queues all Pods with a folder or with objects. No Pod has that name.
var allFolders types.NamespacedName

// enqueuePods queues all Pods with claims, and those that have left a folder. It reads no folder
// itself, since the configuration waits for it.
func (v *Viewer) enqueuePods() {
	if !v.isEnabled() {
		return
	}
	for pod := range v.Caches.Pods.All() {
		v.enqueuePod(pod)
	}
	v.loop.Add(allFolders)
}

// wantedFolders returns the folders of the configured directory, and opens it on first use.
func (v *Viewer) wantedFolders() (*folders, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	directory := v.wantedDirectory()
	if v.kept == nil || v.kept.named != directory {
		opened, err := openFolders(directory)
		if err != nil {
			return nil, err
		}
		v.kept = opened
	}
	return v.kept, nil
}

// reconcilePod writes, keeps or removes the view of a Pod.
func (v *Viewer) reconcilePod(ctx context.Context, key types.NamespacedName) error {
	set := v.Config.Current()
	if set == nil || !v.isEnabled() {
		return nil
	}
	folders, err := v.wantedFolders()
	if err != nil {
		return err
	}
	if key == allFolders {
		for _, key := range append(folders.podKeys(), v.writer.podKeys()...) {
			v.loop.Add(key)
		}
		return nil
	}
	pod := v.Caches.Pods.Get(key)
	node := v.servedNode(pod)
	if former := folders.folderOf(key); former != nil && (node == nil || former.UID != pod.UID) {
		if err := folders.removeFolder(key); err != nil {
			return err
		}
	}
	switch {
	case pod == nil:
		v.writer.forgetPod(key)
	case node != nil && wantsView(pod):
		return v.showPod(ctx, folders, pod, func() containerview.Drivers { return v.Drivers(set, node) })
	}
	return nil
}

// showPod writes the folder and the objects of a Pod that lacks them.
func (v *Viewer) showPod(ctx context.Context, folders *folders, pod *corev1.Pod, known func() containerview.Drivers) error {
	owed := v.mayWriteObjects(ctx, pod, folders.directory)
	if folders.hasFolder(pod) && !owed {
		return nil
	}
	drivers := known()
	if drivers == nil {
		v.loop.AddAfter(observe.Key(pod), driversPollInterval)
		return nil
	}
	planned, err := v.planView(pod, drivers, folders.directory)
	if err != nil { // a missing claim queues the Pod when it comes, but a driver that is mended does not
		v.loop.AddAfter(observe.Key(pod), planRetryInterval)
		return loop.Terminal(err)
	}
	if err := folders.writeFolder(pod, planned); err != nil || !owed {
		return err
	}
	return v.writer.writeObjects(ctx, planned.Objects)
}

// driversPollInterval is how soon a Pod is tried again while the drivers of its node are not known.
const driversPollInterval = time.Second

// planRetryInterval is how soon a view that could not be planned is tried again.
const planRetryInterval = time.Minute

// mayWriteObjects reports whether this replica has to write the objects of a Pod now. Objects that exist
// stay as they are, whatever templates say later: a running container does not change either. While the
// existing objects are not known, the Pod is queued again.
func (v *Viewer) mayWriteObjects(ctx context.Context, pod *corev1.Pod, d Directory) bool {
	if !v.Owner.Acts(pod.Spec.NodeName, true) {
		return false
	}
	if wait := v.writer.listWritten(ctx); wait > 0 {
		v.loop.AddAfter(observe.Key(pod), wait)
		return false
	}
	return !v.writer.hasWritten(pod, d)
}

// servedNode returns the node of a Pod, or nil if it is not fake or the kwok beside us does not manage it.
func (v *Viewer) servedNode(pod *corev1.Pod) *corev1.Node {
	if pod == nil || !v.Owner.MayServe(pod.Spec.NodeName) {
		return nil
	}
	return v.Caches.Nodes.Get(pod.Spec.NodeName)
}

func (v *Viewer) planView(pod *corev1.Pod, drivers containerview.Drivers, d Directory) (*planned, error) {
	containers, err := containerview.Of(pod, v.Caches.Claims.Of(pod), drivers)
	if err != nil {
		return nil, fmt.Errorf("view of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return planFor(pod, containers, hosts{d, v.Shared()})
}
