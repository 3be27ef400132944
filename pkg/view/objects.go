package view

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/containerview"
)

// kwok's kinds that say what kubectl logs and kubectl exec do.
const (
	logsKind = "Logs"
	execKind = "Exec"
)

var (
	group     = schema.GroupVersion{Group: "kwok.x-k8s.io", Version: "v1alpha1"}
	resources = map[string]schema.GroupVersionResource{
		logsKind: group.WithResource("logs"),
		execKind: group.WithResource("execs"),
	}
)

// object is an object of kwok's for a Pod, and has its name.
type object struct {
	*unstructured.Unstructured
	hash string
}

// key tells one object from another.
func key(o *unstructured.Unstructured) string {
	return o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
}

// objectsOf are the objects of a Pod with those containers.
func objectsOf(pod *corev1.Pod, containers []containerview.Container, d Directory) []*object {
	var logs, execs []any
	for i := range containers {
		name, folder := containers[i].Name, d.container(pod.UID, containers[i].Name)
		logs = append(logs, map[string]any{"containers": []any{name}, "logsFile": folder + "/" + logFile})
		execs = append(execs, map[string]any{"containers": []any{name}, "local": map[string]any{
			"workDir": folder + "/" + rootFolder, "envs": d.environment(folder, containers[i].Env),
		}})
	}
	return []*object{
		newObject(pod, logsKind, map[string]any{"logs": logs}),
		newObject(pod, execKind, map[string]any{"execs": execs}),
	}
}

// usualPath is where programs are that no variable says the place of.
const usualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environment are the variables of a program in a container. What stands in for programs comes first.
func (d Directory) environment(folder string, env []string) []any {
	var all []any
	programs := usualPath
	for _, name := range names(env) {
		if name == "PATH" {
			programs = valueOf(env, name)
			continue
		}
		all = append(all, map[string]any{"name": name, "value": valueOf(env, name)})
	}
	return append(all,
		map[string]any{"name": "PATH", "value": d.programs() + ":" + programs},
		map[string]any{"name": viewVariable, "value": folder})
}

// viewVariable has the folder of the container in the programs that kwok runs.
const viewVariable = "KWOK_DRA_VIEW"

func newObject(pod *corev1.Pod, kind string, spec map[string]any) *object {
	made := &object{&unstructured.Unstructured{Object: map[string]any{"spec": spec}}, ""}
	made.SetGroupVersionKind(group.WithKind(kind))
	made.SetNamespace(pod.Namespace)
	made.SetName(pod.Name)
	made.SetLabels(map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedByValue})
	// The garbage collector deletes it with the Pod.
	made.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}})
	made.hash = hashOf(made.Object)
	made.SetAnnotations(map[string]string{v1alpha1.ContainerViewAnnotation: made.hash})
	return made
}

// askAgain is how long after the API server has not served kwok's kinds it is asked again.
const askAgain = 20 * time.Second

// writer writes objects, each once.
type writer struct {
	client dynamic.Interface

	mu sync.Mutex
	// hashes has what was last written of an object, or refused, by its key. It is nil until what
	// earlier runs have written is known.
	hashes map[string]string
	// next is when that is asked for again.
	next time.Time
}

// ready lists once what earlier runs have written, so that a restart writes nothing. It returns how
// long to wait before it is tried again, and tells of a failure itself, once for all Pods.
func (w *writer) ready(ctx context.Context) (wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hashes != nil {
		return 0
	}
	if wait := time.Until(w.next); wait > 0 {
		return wait
	}
	hashes := map[string]string{}
	for kind, resource := range resources {
		list, err := w.client.Resource(resource).List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.ManagedByLabel + "=" + v1alpha1.ManagedByValue})
		if err != nil {
			w.next = time.Now().Add(askAgain)
			klog.FromContext(ctx).Error(err, "Cannot list objects of kwok: kubectl logs and kubectl exec show nothing of Pods until their kind is served, as with kwok's option --enable-crds=Logs,Exec, and may be listed, created and patched", "kind", kind)
			return askAgain
		}
		for i := range list.Items {
			hashes[key(&list.Items[i])] = list.Items[i].GetAnnotations()[v1alpha1.ContainerViewAnnotation]
		}
	}
	w.hashes = hashes
	return 0
}

// write writes an object, unless it was written. Where someone else has written one of that name,
// theirs stays.
func (w *writer) write(ctx context.Context, o *object) error {
	if w.last(o) == o.hash {
		return nil
	}
	_, err := w.client.Resource(resources[o.GetKind()]).Namespace(o.GetNamespace()).
		Apply(ctx, o.GetName(), o.Unstructured, metav1.ApplyOptions{FieldManager: v1alpha1.ManagedByValue})
	switch {
	case apierrors.IsConflict(err):
		klog.FromContext(ctx).V(2).Info("Left an object of kwok to who has written it", "kind", o.GetKind(), "pod", klog.KObj(o), "err", err)
	case err != nil:
		return fmt.Errorf("apply %s %s/%s: %w", o.GetKind(), o.GetNamespace(), o.GetName(), err)
	}
	w.note(o)
	return nil
}

func (w *writer) last(o *object) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hashes[key(o.Unstructured)]
}

func (w *writer) note(o *object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hashes[key(o.Unstructured)] = o.hash
}

// forget forgets the objects of a Pod that is gone.
func (w *writer) forget(pod string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for kind := range resources {
		delete(w.hashes, strings.Join([]string{kind, pod}, " "))
	}
}
