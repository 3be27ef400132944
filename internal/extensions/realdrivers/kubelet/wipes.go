package kubelet

import (
	"context"
	"fmt"
	"sync"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// wipeInterval is how often the slices of a node are deleted while Stages say that its plugins are gone:
// real drivers know nothing of that, and publish again.
const wipeInterval = 5 * time.Second

// wipes deletes the ResourceSlices of drivers on a node that cannot be reached (pendingWipes in
// pkg/kubelet/cm/dra/plugin).
type wipes struct {
	node *node
	ctx  context.Context

	mu sync.Mutex
	// pending cancels the wipe of each driver for which one is scheduled or running.
	pending map[string]context.CancelFunc
	// isWipingAll says that a goroutine deletes the slices of all drivers, and isAllDue that it has to
	// do so once more.
	isWipingAll, isAllDue bool
}

// scheduleWipe deletes the slices of a driver after WipeDelay, unless that is scheduled already.
func (w *wipes) scheduleWipe(driver string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pending[driver] != nil || w.ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(w.ctx)
	w.pending[driver] = cancel
	w.node.lifetime.running.Go(func() {
		defer cancel()
		select {
		case <-ctx.Done():
			return
		case <-time.After(w.node.WipeDelay):
		}
		w.deleteSlices(ctx, driver)
		w.mu.Lock()
		defer w.mu.Unlock()
		if ctx.Err() == nil { // otherwise the entry may belong to a later wipe
			delete(w.pending, driver)
		}
	})
}

// cancelWipe keeps the slices of a driver that can be reached again.
func (w *wipes) cancelWipe(driver string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if cancel := w.pending[driver]; cancel != nil {
		cancel()
		delete(w.pending, driver)
	}
}

// wipeAll deletes the slices of all drivers, and repeats that each wipeInterval while Stages say that
// plugins are gone. One goroutine does it, however often wipeAll is called.
func (w *wipes) wipeAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.isAllDue = true
	if w.isWipingAll {
		return
	}
	w.isWipingAll = true
	w.node.lifetime.running.Go(func() {
		for w.continueWipingAll() {
			w.deleteSlices(w.ctx, "")
			select {
			case <-w.ctx.Done():
				return
			case <-time.After(wipeInterval):
			}
		}
	})
}

// continueWipingAll reports whether the goroutine of wipeAll has to delete the slices now. It has to end
// otherwise.
func (w *wipes) continueWipingAll() bool {
	isGone := w.node.stages.pluginState() == lifecycle.PluginGone
	w.mu.Lock()
	defer w.mu.Unlock()
	w.isWipingAll = w.isAllDue || isGone
	w.isAllDue = false
	return w.isWipingAll
}

// realDriversOn lists the real drivers that have slices on a node.
func realDriversOn(ctx context.Context, client kubernetes.Interface, node string) (sets.Set[string], error) {
	list, err := client.ResourceV1().ResourceSlices().List(ctx, realSlices(node, ""))
	if err != nil {
		return nil, fmt.Errorf("list slices of node %s: %w", node, err)
	}
	drivers := sets.New[string]()
	for i := range list.Items {
		drivers.Insert(list.Items[i].Spec.Driver)
	}
	return drivers, nil
}

// realSlices selects the slices of a real driver on a node, or of all real drivers for "". They lack
// kwok-dra's label.
func realSlices(node, driver string) metav1.ListOptions {
	selector := fields.Set{resourcev1.ResourceSliceSelectorNodeName: node}
	if driver != "" {
		selector[resourcev1.ResourceSliceSelectorDriver] = driver
	}
	return metav1.ListOptions{FieldSelector: selector.String(), LabelSelector: v1alpha1.ManagedByLabel + "!=" + v1alpha1.ManagedByValue}
}

// deleteSlices deletes the slices of a driver on the node, or of all real drivers for "", and retries
// until it succeeds.
func (w *wipes) deleteSlices(ctx context.Context, driver string) {
	backoff := wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.2, Cap: 5 * time.Minute, Steps: 100}
	logger := klog.FromContext(ctx).WithValues("node", w.node.name, "driver", driver)
	_ = wait.ExponentialBackoffWithContext(ctx, backoff, func(ctx context.Context) (bool, error) { // it ends early only with ctx
		if !w.node.isOwned() {
			return true, nil
		}
		err := w.node.Client.ResourceV1().ResourceSlices().DeleteCollection(ctx, metav1.DeleteOptions{}, realSlices(w.node.name, driver))
		if err != nil && !apierrors.IsNotFound(err) {
			logger.Info("Failed to delete the slices of the driver; retrying", "err", err)
			return false, nil
		}
		logger.V(2).Info("Deleted the slices of the driver")
		return true, nil
	})
}
