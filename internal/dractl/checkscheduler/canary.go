package checkscheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

const (
	// look is how often the command polls.
	look = 50 * time.Millisecond
	// cleanUp bounds the deletion of what was created.
	cleanUp = time.Minute
	// canaryTaint keeps other Pods from the canary's node.
	canaryTaint = "dra.kwok.x-k8s.io/canary"
)

// canary shows that the scheduler works: it is a node, and from time to time a Pod without claims that fits only there.
type canary struct {
	client kubernetes.Interface
	// scheduler is the name in Pods, and labels are on them.
	scheduler string
	labels    map[string]string
	// name is of the node, of the namespace, and the beginning of the names of Pods.
	name string
	// timeout is the time that the scheduler has.
	timeout time.Duration
}

// createObjects creates the node and the namespace. An interrupt does not cancel that: the API server may have created
// an object by then, and nobody would delete it.
func (c *canary) createObjects(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUp)
	defer cancel()
	_, err := c.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.name}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create namespace %s: %w", c.name, err)
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: c.name, Labels: map[string]string{corev1.LabelHostname: c.name}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: canaryTaint, Effect: corev1.TaintEffectNoSchedule}}},
	}
	if node, err = c.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create node %s: %w", c.name, err)
	}
	node.ResourceVersion = "" // controllers have written to it by now
	node.Status.Allocatable = corev1.ResourceList{
		corev1.ResourcePods: resource.MustParse("10"), corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi"),
	}
	node.Status.Capacity = node.Status.Allocatable
	node.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
		LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
	}}
	if _, err = c.client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("set the status of node %s: %w", c.name, err)
	}
	return nil
}

// deleteObjects deletes the node and the namespace, even after ctx has ended.
func (c *canary) deleteObjects(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUp)
	defer cancel()
	return errors.Join(
		ignoreGone(c.client.CoreV1().Nodes().Delete(ctx, c.name, metav1.DeleteOptions{})),
		ignoreGone(c.client.CoreV1().Namespaces().Delete(ctx, c.name, metav1.DeleteOptions{})),
	)
}

// ignoreGone returns nil if the object was deleted already.
func ignoreGone(err error) error {
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("delete what was created: %w", err)
}

// awaitTurn creates a Pod, waits until the scheduler has bound it, and deletes it. What was in the queue of a scheduler before
// it has had its turn then. It returns the version at which the Pod was created.
func (c *canary) awaitTurn(ctx context.Context) (version string, err error) {
	creating, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUp)
	defer cancel()
	pods := c.client.CoreV1().Pods(c.name)
	pod, err := pods.Create(creating, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: c.name + "-", Labels: c.labels},
		Spec: corev1.PodSpec{
			SchedulerName: c.scheduler,
			NodeSelector:  map[string]string{corev1.LabelHostname: c.name},
			// The node's own taint, and those of a node without a kubelet.
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers:  []corev1.Container{{Name: "main", Image: "none"}},

			AutomountServiceAccountToken: new(bool), TerminationGracePeriodSeconds: new(int64),
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("create a Pod in namespace %s: %w", c.name, err)
	}
	defer func() {
		deleting, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUp)
		defer cancel()
		err = errors.Join(err, ignoreGone(pods.Delete(deleting, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})))
	}()
	err = wait.PollUntilContextTimeout(ctx, look, c.timeout, false, func(ctx context.Context) (bool, error) {
		found, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return found.Spec.NodeName != "", nil
	})
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case wait.Interrupted(err):
		return "", fmt.Errorf("no scheduler named %s bound Pod %s, which has no claims, within %s: start it, or give --scheduler-name NAME", c.scheduler, pod.Name, c.timeout)
	case err != nil:
		return "", fmt.Errorf("wait until Pod %s is bound: %w", pod.Name, err)
	}
	return pod.ResourceVersion, nil
}
