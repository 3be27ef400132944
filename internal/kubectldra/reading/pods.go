package reading

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/extensions/util/groupclient"
)

// GetPod gets a Pod by its name. The error for one that does not exist names the Pod that may be meant.
func GetPod(ctx context.Context, client groupclient.Interface, namespace, name string) (*corev1.Pod, error) {
	pod, err := client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		list, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return nil, fmt.Errorf("list Pods of namespace %s: %w", namespace, err)
		}
		names := make([]string, len(list.Items))
		for i := range list.Items {
			names[i] = list.Items[i].Name
		}
		return nil, cli.NotFound(fmt.Sprintf("there is no Pod %q in namespace %s", name, namespace), name, names,
			"list them with kubectl get pods, or give another namespace with -n")
	}
	if err != nil {
		return nil, fmt.Errorf("get Pod %s/%s: %w", namespace, name, err)
	}
	return pod, nil
}
