package faults

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// jobLabel is on the Pods of Jobs. They end as soon as they run, and remain.
const jobLabel = "batch.kubernetes.io/job-name"

// createJob creates a Job of two Pods, which at times share a claim.
func (l *podLoad) createJob() operation {
	pod := l.newPod()
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: pod.Name}, Spec: batchv1.JobSpec{
		Parallelism: new(int32(2)), Completions: new(int32(2)), BackoffLimit: new(int32(100)),
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: pod.Spec},
	}}
	return operation{"create job " + job.Name, 16, 0, func(ctx context.Context) error {
		if err := l.createClaim(ctx, pod); err != nil {
			return err
		}
		_, err := l.world.client.BatchV1().Jobs(namespace).Create(ctx, job, metav1.CreateOptions{})
		return err
	}}
}

// onePodOfJobs does something with one of the Pods of Jobs, if there is any.
func (l *podLoad) onePodOfJobs(name string, do func(ctx context.Context, pod string) error) operation {
	number := l.random.IntN(podCount)
	return operation{name, 3, 0, func(ctx context.Context) error {
		pods, err := l.world.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: jobLabel})
		if err != nil || len(pods.Items) == 0 {
			return err
		}
		return do(ctx, pods.Items[number%len(pods.Items)].Name)
	}}
}

func (l *podLoad) deletePodOfJobs() operation {
	return l.onePodOfJobs("delete a pod of a job", func(ctx context.Context, pod string) error {
		return l.world.client.CoreV1().Pods(namespace).Delete(ctx, pod, metav1.DeleteOptions{})
	})
}

func (l *podLoad) editPodOfJobs() operation {
	patch := l.irrelevant()
	return l.onePodOfJobs("edit a pod of a job", func(ctx context.Context, pod string) error {
		_, err := l.world.client.CoreV1().Pods(namespace).Patch(ctx, pod, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}

// editPod changes what nobody looks at.
func (l *podLoad) editPod() operation { return l.patchPod("edit", string(l.irrelevant())) }

func (l *podLoad) irrelevant() []byte {
	return fmt.Appendf(nil, `{"metadata": {"annotations": {"example.com/edited": "%d"}}}`, l.random.Int())
}
