package status

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cluster"
	"github.com/kwok-dra/kwok-dra/internal/dractl/clusterdevices"
	"github.com/kwok-dra/kwok-dra/internal/dractl/steps"
	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/history"
)

// readStory reads the story of a claim.
func readStory(ctx context.Context, client kubernetes.Interface, namespace, name string) (*history.Story, error) {
	claim, err := getClaim(ctx, client, namespace, name)
	if err != nil {
		return nil, err
	}
	s := &history.Story{Claim: claim, Pods: map[string]*corev1.Pod{}}
	for _, consumer := range clusterdevices.ConsumingPods(claim) {
		pod, err := client.CoreV1().Pods(namespace).Get(ctx, consumer, metav1.GetOptions{})
		switch {
		case err == nil:
			s.Pods[consumer] = pod
		case !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("get pod %s/%s: %w", namespace, consumer, err)
		}
	}
	events, err := client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	s.Events = cluster.Pointers(events.Items)
	return s, nil
}

// getClaim gets a claim that the user has named.
func getClaim(ctx context.Context, client kubernetes.Interface, namespace, name string) (*resourcev1.ResourceClaim, error) {
	claim, err := client.ResourceV1().ResourceClaims(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		list, err := client.ResourceV1().ResourceClaims(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("there is no claim %q in namespace %s: list claims: %w", name, namespace, err)
		}
		return nil, steps.ExplainMissing(namespace, name, cluster.Pointers(list.Items))
	}
	if err != nil {
		return nil, fmt.Errorf("get resourceclaim %s/%s: %w", namespace, name, err)
	}
	return claim, nil
}
