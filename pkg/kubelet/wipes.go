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
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
)

// wipeAgain is how often the slices of a node are wiped whose plugins are gone by what Stages
// say: real drivers, which know nothing of it, publish them again.
const wipeAgain = 5 * time.Second

// wipes are the ResourceSlices of a node that are to be deleted since their driver cannot be
// reached (pendingWipes in pkg/kubelet/cm/dra/plugin).
type wipes struct {
	node *node
	ctx  context.Context

	mu sync.Mutex
	// pending ends the wait for a driver. done and cancel end an entry.
	pending map[string]context.CancelFunc
	// wipingAll says that the slices of all drivers are being deleted, and allDue that this is due.
	wipingAll, allDue bool
}

// schedule has the slices of a driver deleted after the delay, unless that has begun.
func (w *wipes) schedule(driver string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pending[driver] != nil || w.ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(w.ctx)
	w.pending[driver] = cancel
	w.node.running.Go(func() {
		defer cancel()
		select {
		case <-ctx.Done():
			return
		case <-time.After(w.node.WipeDelay):
		}
		w.wipe(ctx, driver)
		w.done(ctx, driver)
	})
}

// done gives a driver whose slices are wiped the delay anew, should it publish others.
func (w *wipes) done(ctx context.Context, driver string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() == nil { // or there may be a later one
		delete(w.pending, driver)
	}
}

// cancel keeps the slices of a driver, which can be reached again.
func (w *wipes) cancel(driver string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if cancel := w.pending[driver]; cancel != nil {
		cancel()
		delete(w.pending, driver)
	}
}

// all deletes the slices of all drivers, and again as long as Stages say that plugins are gone. However
// often that is said, there is one who does it, every wipeAgain at most.
func (w *wipes) all() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.allDue = true
	if w.wipingAll {
		return
	}
	w.wipingAll = true
	w.node.running.Go(func() {
		for w.takeAll() {
			w.wipe(w.ctx, "")
			select {
			case <-w.ctx.Done():
				return
			case <-time.After(wipeAgain):
			}
		}
	})
}

// takeAll reports whether the slices of all drivers are to be deleted now, and otherwise ends who does it.
func (w *wipes) takeAll() bool {
	gone := w.node.pluginState() == lifecycle.PluginGone
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wipingAll = w.allDue || gone
	w.allDue = false
	return w.wipingAll
}

// driversOf are the real drivers that have slices on a node.
func (k *Kubelets) driversOf(ctx context.Context, node string) (sets.Set[string], error) {
	list, err := k.Client.ResourceV1().ResourceSlices().List(ctx, realSlices(node, ""))
	if err != nil {
		return nil, fmt.Errorf("list slices of node %s: %w", node, err)
	}
	drivers := sets.New[string]()
	for i := range list.Items {
		drivers.Insert(list.Items[i].Spec.Driver)
	}
	return drivers, nil
}

// realSlices selects the slices of a real driver on a node, or of all: those that no template
// has made.
func realSlices(node, driver string) metav1.ListOptions {
	selector := fields.Set{resourcev1.ResourceSliceSelectorNodeName: node}
	if driver != "" {
		selector[resourcev1.ResourceSliceSelectorDriver] = driver
	}
	return metav1.ListOptions{FieldSelector: selector.String(), LabelSelector: v1alpha1.ManagedByLabel + "!=" + v1alpha1.ManagedByValue}
}

// wipe deletes the slices of a driver on the node, or of all real drivers, and tries again until
// it succeeds.
func (w *wipes) wipe(ctx context.Context, driver string) {
	backoff := wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.2, Cap: 5 * time.Minute, Steps: 100}
	logger := klog.FromContext(ctx).WithValues("node", w.node.name, "driver", driver)
	_ = wait.ExponentialBackoffWithContext(ctx, backoff, func(ctx context.Context) (bool, error) { // it ends early only with ctx
		if !w.node.acts() {
			return true, nil
		}
		err := w.node.Client.ResourceV1().ResourceSlices().DeleteCollection(ctx, metav1.DeleteOptions{}, realSlices(w.node.name, driver))
		if err != nil && !apierrors.IsNotFound(err) {
			logger.Info("Deleting the slices of the driver failed, trying again", "err", err)
			return false, nil
		}
		logger.V(2).Info("Deleted the slices of the driver")
		return true, nil
	})
}
