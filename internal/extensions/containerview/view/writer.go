package view

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/internal/observe"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// listRetryInterval is how soon the objects are listed again after a failure.
const listRetryInterval = 20 * time.Second

// writer writes kwok's objects, each once.
type writer struct {
	client dynamic.Interface

	mu sync.Mutex
	// written maps Pods to their objects by kind, including objects that others have written. It is nil
	// until the objects of earlier runs are listed.
	written map[types.NamespacedName]map[string]target
	// next is when they are listed again after a failure.
	next time.Time
}

// target is what an object is for: a Pod, and the directory with its files.
type target struct {
	pod       types.UID
	directory Directory
}

// listWritten lists once what earlier runs have written, so that a restart writes nothing. After a
// failure, which it logs once for all Pods, it returns how long to wait before the next call.
func (w *writer) listWritten(ctx context.Context) (wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.written != nil {
		return 0
	}
	if wait := time.Until(w.next); wait > 0 {
		return wait
	}
	w.written = map[types.NamespacedName]map[string]target{}
	for kind, resource := range resources {
		list, err := w.client.Resource(resource).List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.ManagedByLabel + "=" + v1alpha1.ManagedByValue})
		if err != nil {
			w.written, w.next = nil, time.Now().Add(listRetryInterval)
			klog.FromContext(ctx).Error(err, "Failed to list objects of kwok: kubectl logs and kubectl exec show nothing of Pods until their kind is served, as with kwok's option --enable-crds=Logs,Exec, and may be listed, created and patched", "kind", kind)
			return listRetryInterval
		}
		for i := range list.Items {
			w.noteWritten(&list.Items[i], kind)
		}
	}
	return 0
}

// hasWritten reports whether all objects of a Pod are written.
func (w *writer) hasWritten(pod *corev1.Pod, d Directory) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	written := w.written[observe.Key(pod)]
	for kind := range resources {
		if written[kind] != (target{pod.UID, d}) {
			return false
		}
	}
	return true
}

// writeObjects writes the objects of a Pod. It leaves alone an object of that name that somebody else owns.
func (w *writer) writeObjects(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		w.mu.Lock()
		isWritten := w.written[observe.Key(o)][o.GetKind()] == targetOf(o)
		w.mu.Unlock()
		if isWritten {
			continue
		}
		_, err := w.client.Resource(resources[o.GetKind()]).Namespace(o.GetNamespace()).
			Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: v1alpha1.ManagedByValue})
		switch {
		case apierrors.IsConflict(err):
			klog.FromContext(ctx).V(2).Info("Skipped an object of kwok: another field manager owns it", "kind", o.GetKind(), "pod", klog.KObj(o), "err", err)
		case err != nil:
			return fmt.Errorf("apply %s %s/%s: %w", o.GetKind(), o.GetNamespace(), o.GetName(), err)
		}
		w.mu.Lock()
		w.noteWritten(o, o.GetKind())
		w.mu.Unlock()
	}
	return nil
}

// targetOf returns what an object is for.
func targetOf(o *unstructured.Unstructured) target {
	made := target{directory: Directory(o.GetAnnotations()[v1alpha1.ContainerViewAnnotation])}
	for _, owner := range o.GetOwnerReferences() {
		made.pod = owner.UID
	}
	return made
}

// noteWritten records that an object exists. The caller holds the lock.
func (w *writer) noteWritten(o *unstructured.Unstructured, kind string) {
	key := observe.Key(o)
	if w.written[key] == nil {
		w.written[key] = map[string]target{}
	}
	w.written[key][kind] = targetOf(o)
}

// podKeys returns the Pods that have objects.
func (w *writer) podKeys() []types.NamespacedName {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.written))
}

// forgetPod drops the objects of a Pod that is gone.
func (w *writer) forgetPod(pod types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.written, pod)
}
