package why

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/extensions/util/groupclient"
)

// subject is what the user names: a kind and a name.
type subject struct{ kind, name string }

// The kinds of subjects.
const (
	podKind         = "Pod"
	claimKind       = "ResourceClaim"
	deploymentKind  = "Deployment"
	replicaSetKind  = "ReplicaSet"
	statefulSetKind = "StatefulSet"
	daemonSetKind   = "DaemonSet"
	jobKind         = "Job"
)

// kinds are the kinds by the names that kubectl has for them.
var kinds = map[string]string{
	"pod": podKind, "pods": podKind, "po": podKind,
	"claim": claimKind, "claims": claimKind, "resourceclaim": claimKind, "resourceclaims": claimKind,
	"deployment": deploymentKind, "deployments": deploymentKind, "deploy": deploymentKind, "deployment.apps": deploymentKind,
	"replicaset": replicaSetKind, "replicasets": replicaSetKind, "rs": replicaSetKind, "replicaset.apps": replicaSetKind,
	"statefulset": statefulSetKind, "statefulsets": statefulSetKind, "sts": statefulSetKind, "statefulset.apps": statefulSetKind,
	"daemonset": daemonSetKind, "daemonsets": daemonSetKind, "ds": daemonSetKind, "daemonset.apps": daemonSetKind,
	"job": jobKind, "jobs": jobKind, "job.batch": jobKind,
	"resourceclaim.resource.k8s.io": claimKind,
}

// parseSubjects reads names, as kubectl get does: NAME, KIND/NAME, or KIND NAME.
func parseSubjects(arguments []string) ([]subject, error) {
	if len(arguments) > 1 && !strings.Contains(arguments[0], "/") && kinds[arguments[0]] != "" {
		var all []subject
		for _, name := range arguments[1:] {
			all = append(all, subject{kinds[arguments[0]], name})
		}
		return all, nil
	}
	var all []subject
	for _, argument := range arguments {
		kind, name, found := strings.Cut(argument, "/")
		if !found {
			kind, name = "pod", argument
		}
		if kinds[strings.ToLower(kind)] == "" || name == "" {
			return nil, fmt.Errorf("parse %s: give a Pod, claim/NAME, deployment/NAME, replicaset/NAME, statefulset/NAME, daemonset/NAME or job/NAME", argument)
		}
		all = append(all, subject{kinds[strings.ToLower(kind)], name})
	}
	return all, nil
}

// workload is what makes Pods.
type workload struct {
	subject

	selector *metav1.LabelSelector
	// wanted is how many Pods there should be, and problem what keeps it from making them, if that is known.
	wanted  int32
	problem string
}

func (w *workload) nameWorkload() string { return w.kind + " " + w.name }

// describeEmpty says why there are no Pods.
func (w *workload) describeEmpty() string {
	switch {
	case w.problem != "":
		return w.problem
	case w.wanted == 0:
		return "it asks for none"
	}
	return fmt.Sprintf("it asks for %d, and its controller has made none: kubectl describe %s %s", w.wanted, strings.ToLower(w.kind), w.name)
}

// getWorkload reads a workload.
func getWorkload(ctx context.Context, client groupclient.Interface, namespace string, named subject) (*workload, error) {
	w := &workload{subject: named}
	var err error
	switch apps := client.AppsV1(); named.kind {
	case deploymentKind:
		err = read(ctx, named.name, apps.Deployments(namespace).Get, func(d *appsv1.Deployment) {
			w.selector, w.wanted = d.Spec.Selector, countOrOne(d.Spec.Replicas)
			for _, condition := range d.Status.Conditions {
				w.noteProblem(condition.Type == appsv1.DeploymentReplicaFailure, condition.Status, condition.Message)
			}
		})
	case replicaSetKind:
		err = read(ctx, named.name, apps.ReplicaSets(namespace).Get, func(r *appsv1.ReplicaSet) {
			w.selector, w.wanted = r.Spec.Selector, countOrOne(r.Spec.Replicas)
			for _, condition := range r.Status.Conditions {
				w.noteProblem(condition.Type == appsv1.ReplicaSetReplicaFailure, condition.Status, condition.Message)
			}
		})
	case statefulSetKind:
		err = read(ctx, named.name, apps.StatefulSets(namespace).Get, func(s *appsv1.StatefulSet) {
			w.selector, w.wanted = s.Spec.Selector, countOrOne(s.Spec.Replicas)
		})
	case daemonSetKind:
		err = read(ctx, named.name, apps.DaemonSets(namespace).Get, func(d *appsv1.DaemonSet) {
			w.selector, w.wanted = d.Spec.Selector, d.Status.DesiredNumberScheduled
		})
	case jobKind:
		err = read(ctx, named.name, client.BatchV1().Jobs(namespace).Get, w.readJob)
	}
	if err != nil {
		return nil, fmt.Errorf("get %s %s: %w", strings.ToLower(named.kind), named.name, err)
	}
	return w, nil
}

// read gets an object, and reads what is needed of it.
func read[T any](ctx context.Context, name string, get func(context.Context, string, metav1.GetOptions) (*T, error), take func(*T)) error {
	object, err := get(ctx, name, metav1.GetOptions{})
	if err == nil {
		take(object)
	}
	return err
}

func (w *workload) readJob(job *batchv1.Job) {
	w.selector, w.wanted = job.Spec.Selector, countOrOne(job.Spec.Parallelism)
	if job.Spec.Suspend != nil && *job.Spec.Suspend {
		w.problem = "it is suspended (spec.suspend), by its user or a queue"
	}
	for _, condition := range job.Status.Conditions {
		w.noteProblem(condition.Type == batchv1.JobFailed, condition.Status, condition.Message)
	}
}

func (w *workload) noteProblem(isProblem bool, status corev1.ConditionStatus, message string) {
	if isProblem && status == corev1.ConditionTrue {
		w.problem = message
	}
}

func countOrOne(count *int32) int32 {
	if count == nil {
		return 1
	}
	return *count
}

// makes reports whether a Pod is of the workload. The ReplicaSets of a Deployment have the hash of the Pods in their name.
func (w *workload) makes(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	switch {
	case owner == nil:
		return false
	case w.kind == deploymentKind:
		return owner.Kind == replicaSetKind && owner.Name == w.name+"-"+pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	}
	return owner.Kind == w.kind && owner.Name == w.name
}

// podsOf returns the Pods of the workload.
func (w *workload) podsOf(pods []*corev1.Pod) []*corev1.Pod {
	return slices.DeleteFunc(pods, func(pod *corev1.Pod) bool { return !w.makes(pod) })
}
