package input

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kwok-dra/kwok-dra/internal/dractl/documents"
)

// workload is an object of the files that makes Pods of a template.
type workload struct {
	kind     schema.GroupVersionKind
	meta     *metav1.ObjectMeta
	template *corev1.PodTemplateSpec
	// count is how many Pods it has at once.
	count int
	// before is how many Pods to schedule come before it in the files.
	before int
}

// parallelPods is how many Pods a Job has at once: none if it is suspended or has ended, and no more than are left
// to complete.
func parallelPods(spec *batchv1.JobSpec, status *batchv1.JobStatus) int {
	hasEnded := slices.ContainsFunc(status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed)
	})
	if hasEnded || spec.Suspend != nil && *spec.Suspend {
		return 0
	}
	count := countOrOne(spec.Parallelism)
	if spec.Completions != nil {
		count = min(count, max(0, int(*spec.Completions-status.Succeeded)))
	}
	return count
}

func countOrOne(count *int32) int {
	if count == nil {
		return 1
	}
	return int(*count)
}

func (in *Input) addWorkload(err error, object documents.Object, meta *metav1.ObjectMeta, template *corev1.PodTemplateSpec, count int) error {
	if err == nil {
		in.workloads = append(in.workloads, &workload{object.GroupVersionKind(), meta, template, count, len(in.Waiting)})
	}
	return err
}

// AddPodsOfWorkloads adds the Pods that workloads still have to make: as many as they have at once, without
// those that are there already. A workload that belongs to another one makes none, since that one makes them.
func (in *Input) AddPodsOfWorkloads() {
	there, names := map[*workload]int{}, sets.Set[string]{}
	for _, pod := range slices.Concat(in.Pods, in.Waiting) {
		names.Insert(namespacedName(pod.Namespace, pod.Name))
		if pod.DeletionTimestamp == nil {
			there[in.rootOf(pod)]++
		}
	}
	var all []*corev1.Pod
	added := 0
	for _, w := range in.workloads {
		all, added = append(all, in.Waiting[added:w.before]...), w.before
		if in.rootOf(w.meta) != nil {
			continue
		}
		controller := *metav1.NewControllerRef(w.meta, w.kind)
		for number, missing := 0, w.count-there[w]; missing > 0; number++ {
			pod := &corev1.Pod{ObjectMeta: *w.template.ObjectMeta.DeepCopy(), Spec: *w.template.Spec.DeepCopy()}
			pod.Name, pod.Namespace, pod.OwnerReferences = fmt.Sprintf("%s-%d", w.meta.Name, number), w.meta.Namespace, []metav1.OwnerReference{controller}
			if !names.Has(namespacedName(pod.Namespace, pod.Name)) {
				all, missing = append(all, pod), missing-1
			}
		}
	}
	in.Waiting = append(all, in.Waiting[added:]...)
}

// rootOf finds the outermost workload of the files that owns an object, or nil.
func (in *Input) rootOf(object metav1.Object) *workload {
	var root *workload
	for range len(in.workloads) { // others may own each other in a circle
		owner := in.ownerOf(object)
		if owner == nil {
			break
		}
		root, object = owner, owner.meta
	}
	return root
}

// ownerOf finds the workload of the files that controls an object, or nil. It recognizes the ReplicaSet of a
// Deployment and the Job of a CronJob by their names, since they are often not saved with their Pods.
func (in *Input) ownerOf(object metav1.Object) *workload {
	controller := metav1.GetControllerOf(object)
	if controller == nil {
		return nil
	}
	group := schema.FromAPIVersionAndKind(controller.APIVersion, "").Group
	find := func(kind, name string) *workload {
		i := slices.IndexFunc(in.workloads, func(w *workload) bool {
			return w.kind.Group == group && w.kind.Kind == kind && w.meta.Name == name && w.meta.Namespace == object.GetNamespace()
		})
		if i < 0 {
			return nil
		}
		return in.workloads[i]
	}
	owner := find(controller.Kind, controller.Name)
	switch {
	case owner != nil:
	case controller.Kind == "ReplicaSet":
		owner = find("Deployment", strings.TrimSuffix(controller.Name, "-"+object.GetLabels()[appsv1.DefaultDeploymentUniqueLabelKey]))
	case controller.Kind == "Job":
		name := strings.TrimRight(controller.Name, "0123456789")
		owner = find("CronJob", strings.TrimSuffix(name, "-"))
	}
	return owner
}

// MakerOf names what makes a Pod, as kind/name, or the Pod itself.
func (in *Input) MakerOf(pod *corev1.Pod) string {
	if root := in.rootOf(pod); root != nil {
		return root.kind.Kind + "/" + root.meta.Name
	}
	if owner := metav1.GetControllerOf(pod); owner != nil {
		return owner.Kind + "/" + owner.Name
	}
	return pod.Name
}
