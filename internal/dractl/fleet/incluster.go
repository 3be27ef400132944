package fleet

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
)

// The ConfigMap that the manifests make.
const defaultNamespace, defaultConfigMap = metav1.NamespaceSystem, "kwok-dra"

// SetInCluster reads the configuration as Set. Where none is named, it is that of the
// cluster, as the sidecar takes it: the ConfigMap that the manifests make, and the custom
// resources. There may be no template at all.
func (t *Templates) SetInCluster(ctx context.Context, streams cli.Streams, client kubernetes.Interface, objects dynamic.Interface) (*config.Set, error) {
	if len(t.Files.Paths) > 0 || t.ConfigMap != "" {
		return t.Set(ctx, streams, client)
	}
	configMap, err := client.CoreV1().ConfigMaps(defaultNamespace).Get(ctx, defaultConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		configMap, err = nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read ConfigMap %s/%s: %w", defaultNamespace, defaultConfigMap, err)
	}
	var all []*unstructured.Unstructured
	for _, kind := range config.OwnKinds() {
		list, err := objects.Resource(kind.Resource).List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) { // the kind has no definition
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", kind.Resource.Resource, err)
		}
		for i := range list.Items {
			all = append(all, &list.Items[i])
		}
	}
	set, refused := config.Snapshot(configMap, all)
	for _, err := range refused {
		streams.Tell("left out: %v\n", err)
	}
	return set, nil
}
