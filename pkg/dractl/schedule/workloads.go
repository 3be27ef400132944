package schedule

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/pkg/dractl/documents"
)

// addDeployment adds the Pods of a Deployment, and the other functions those of their kinds.
func (in *input) addDeployment(object documents.Object) error {
	d := new(appsv1.Deployment)
	err := appendAs(in, new([]*appsv1.Deployment), object, d, in.namespace)
	return in.addPodsOf(err, object, &d.ObjectMeta, &d.Spec.Template, d.Spec.Replicas)
}

func (in *input) addReplicaSet(object documents.Object) error {
	r := new(appsv1.ReplicaSet)
	err := appendAs(in, new([]*appsv1.ReplicaSet), object, r, in.namespace)
	return in.addPodsOf(err, object, &r.ObjectMeta, &r.Spec.Template, r.Spec.Replicas)
}

func (in *input) addStatefulSet(object documents.Object) error {
	s := new(appsv1.StatefulSet)
	err := appendAs(in, new([]*appsv1.StatefulSet), object, s, in.namespace)
	return in.addPodsOf(err, object, &s.ObjectMeta, &s.Spec.Template, s.Spec.Replicas)
}

func (in *input) addJob(object documents.Object) error {
	j := new(batchv1.Job)
	err := appendAs(in, new([]*batchv1.Job), object, j, in.namespace)
	return in.addPodsOf(err, object, &j.ObjectMeta, &j.Spec.Template, atOnce(&j.Spec))
}

func (in *input) addCronJob(object documents.Object) error {
	c := new(batchv1.CronJob)
	err := appendAs(in, new([]*batchv1.CronJob), object, c, in.namespace)
	return in.addPodsOf(err, object, &c.ObjectMeta, &c.Spec.JobTemplate.Spec.Template, atOnce(&c.Spec.JobTemplate.Spec))
}

// atOnce is how many Pods a Job has at once.
func atOnce(spec *batchv1.JobSpec) *int32 {
	switch {
	case spec.Suspend != nil && *spec.Suspend:
		return new(int32(0))
	case spec.Parallelism != nil && spec.Completions != nil:
		return new(min(*spec.Parallelism, *spec.Completions))
	}
	return spec.Parallelism
}

// addPodsOf adds the Pods that a controller makes of its template, one if it says no number. One that
// another controller owns makes none, since the owner's template has them.
func (in *input) addPodsOf(err error, object documents.Object, owner *metav1.ObjectMeta, template *corev1.PodTemplateSpec, count *int32) error {
	if err != nil || metav1.GetControllerOf(owner) != nil {
		return err
	}
	if count == nil {
		count = new(int32(1))
	}
	controller := *metav1.NewControllerRef(owner, object.GroupVersionKind())
	for i := range *count {
		pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
		pod.Name, pod.Namespace, pod.OwnerReferences = fmt.Sprintf("%s-%d", owner.Name, i), owner.Namespace, []metav1.OwnerReference{controller}
		in.pods = append(in.pods, pod)
	}
	return nil
}

// ownerOf names what makes a Pod, as kind/name, or the Pod itself.
func ownerOf(pod *corev1.Pod) string {
	if owner := metav1.GetControllerOf(pod); owner != nil {
		return owner.Kind + "/" + owner.Name
	}
	return pod.Name
}
