package why

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/simulator"
	"github.com/kwok-dra/kwok-dra/internal/extensions/util/groupclient"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// Read reads a cluster, and the Pods of a namespace, or of all.
func Read(ctx context.Context, client groupclient.Interface, namespace string) (*Cluster, []*corev1.Pod, error) {
	world, all, err := simulator.Read(ctx, client)
	if err != nil {
		return nil, nil, err
	}
	events, err := Failures(ctx, client, namespace)
	if err != nil {
		return nil, nil, err
	}
	for _, pod := range all {
		if pod.Spec.NodeName != "" && !facts.IsTerminal(pod) {
			world.Pods = append(world.Pods, pod)
		}
	}
	c := NewWorldCluster(world, events)
	var in []*corev1.Pod
	for _, pod := range all {
		if namespace == "" || pod.Namespace == namespace {
			in = append(in, pod)
		}
	}
	return c, in, nil
}

// Failures lists the events about claims that cannot be created or prepared.
func Failures(ctx context.Context, client groupclient.Interface, namespace string) ([]*corev1.Event, error) {
	var all []*corev1.Event
	for _, reason := range []string{v1alpha1.ReasonFailedPrepare, failedCreation} {
		list, err := client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=" + reason})
		if err != nil {
			return nil, fmt.Errorf("list events: %w", err)
		}
		for i := range list.Items {
			all = append(all, &list.Items[i])
		}
	}
	return all, nil
}

// Waiting returns the answers for the Pods that wait.
func (c *Cluster) Waiting(ctx context.Context, pods []*corev1.Pod) []*Answer {
	var answers []*Answer
	for _, pod := range pods {
		if answer := c.Answer(ctx, pod); answer.Waits() {
			answers = append(answers, answer)
		}
	}
	return answers
}
