package checkscheduler

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/internal/dractl/trial"
)

// sourcesOf are those of a story. Pods are watched in all namespaces: those of a DaemonSet take room on the nodes of
// the story.
func sourcesOf(ctx context.Context, client kubernetes.Interface, namespace, selector string) ([]trial.Source, error) {
	labelled := metav1.ListOptions{LabelSelector: selector}
	sources := []trial.Source{
		trial.NewSource("Namespace", client.CoreV1().Namespaces(), client.CoreV1().Namespaces(), labelled),
		trial.NewSource("Node", client.CoreV1().Nodes(), client.CoreV1().Nodes(), labelled),
		trial.NewSource("Pod", client.CoreV1().Pods(namespace), client.CoreV1().Pods(metav1.NamespaceAll), metav1.ListOptions{}),
		trial.NewSource("ResourceQuota", client.CoreV1().ResourceQuotas(namespace), client.CoreV1().ResourceQuotas(namespace), metav1.ListOptions{}),
		trial.NewSource("ResourceClaim", client.ResourceV1().ResourceClaims(namespace), client.ResourceV1().ResourceClaims(namespace), metav1.ListOptions{}),
		trial.NewSource("ResourceSlice", client.ResourceV1().ResourceSlices(), client.ResourceV1().ResourceSlices(), labelled),
		trial.NewSource("DeviceClass", client.ResourceV1().DeviceClasses(), client.ResourceV1().DeviceClasses(), labelled),
	}
	// The newest version of rules that the API server has. Their fields are the same.
	for _, rules := range []trial.Source{
		trial.NewSource("DeviceTaintRule", client.ResourceV1().DeviceTaintRules(), client.ResourceV1().DeviceTaintRules(), labelled),
		trial.NewSource("DeviceTaintRule", client.ResourceV1beta2().DeviceTaintRules(), client.ResourceV1beta2().DeviceTaintRules(), labelled),
		trial.NewSource("DeviceTaintRule", client.ResourceV1alpha3().DeviceTaintRules(), client.ResourceV1alpha3().DeviceTaintRules(), labelled),
	} {
		_, err := rules.List(ctx)
		if err == nil {
			return append(sources, rules), nil
		}
		if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("list DeviceTaintRules: %w", err)
		}
	}
	return sources, nil
}
