package view

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kwok-dra/kwok-dra/internal/extensions/containerview"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
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

// objectsOf returns the objects of a Pod.
func objectsOf(pod *corev1.Pod, containers []containerview.Container, d Directory) []*unstructured.Unstructured {
	var logs, execs []any
	for i := range containers {
		name, folder := containers[i].Name, d.containerFolder(pod.UID, containers[i].Name)
		logs = append(logs, map[string]any{"containers": []any{name}, "logsFile": folder + "/" + logFile})
		execs = append(execs, map[string]any{"containers": []any{name}, "local": map[string]any{
			"workDir": folder + "/" + rootFolder, "envs": d.newEnvironment(folder, containers[i].Env),
		}})
	}
	return []*unstructured.Unstructured{
		d.newObject(pod, logsKind, map[string]any{"logs": logs}),
		d.newObject(pod, execKind, map[string]any{"execs": execs}),
	}
}

// usualPath is the PATH of a container that sets none.
const usualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// newEnvironment returns the variables of a program in a container, with the stand-ins first in the PATH.
func (d Directory) newEnvironment(folder string, env []string) []any {
	var all []any
	programs := usualPath
	for _, name := range variableNames(env) {
		if name == "PATH" {
			programs = valueOf(env, name)
			continue
		}
		all = append(all, map[string]any{"name": name, "value": valueOf(env, name)})
	}
	return append(all,
		map[string]any{"name": "PATH", "value": d.programsFolder() + ":" + programs},
		map[string]any{"name": viewVariable, "value": folder})
}

// viewVariable has the folder of the container in the programs that kwok runs.
const viewVariable = "KWOK_DRA_VIEW"

// newObject makes an object for a Pod. It has the name of the Pod.
func (d Directory) newObject(pod *corev1.Pod, kind string, spec map[string]any) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	made.SetGroupVersionKind(group.WithKind(kind))
	made.SetNamespace(pod.Namespace)
	made.SetName(pod.Name)
	made.SetLabels(map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedByValue})
	made.SetAnnotations(map[string]string{v1alpha1.ContainerViewAnnotation: string(d)})
	// The garbage collector deletes it with the Pod.
	made.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}})
	return made
}
