package fleet

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/pkg/config"
	"github.com/kwok-dra/kwok-dra/pkg/dractl/check"
	"github.com/kwok-dra/kwok-dra/pkg/dractl/cli"
	"github.com/kwok-dra/kwok-dra/pkg/dractl/documents"
)

// defaultConfigMap is the one that the manifests make.
const defaultConfigMap = "kube-system/kwok-dra"

// SetInCluster reads the configuration as Set. Where none is named, it is that of the
// cluster: the ConfigMap that the manifests make, and the custom resources. There may be
// no template at all.
func (t *Templates) SetInCluster(ctx context.Context, streams cli.Streams, client kubernetes.Interface, objects dynamic.Interface) (*config.Set, error) {
	if len(t.Files.Paths) > 0 || t.ConfigMap != "" {
		return t.Set(ctx, streams, client)
	}
	var all []documents.Document
	carried, err := (&Templates{ConfigMap: defaultConfigMap}).readConfigMap(ctx, client)
	switch {
	case err == nil:
		all = append(all, carried)
	case !apierrors.IsNotFound(err):
		return nil, err
	}
	for _, kind := range config.OwnKinds() {
		found, err := readObjects(ctx, objects, kind)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	result := check.Documents(all)
	for _, finding := range result.Problems {
		streams.Tell("%v\n", finding)
	}
	if len(result.Problems) > 0 {
		return nil, errors.New("the templates of the cluster have mistakes: correct them, or give the good ones with -f FILE")
	}
	return result.Set, nil
}

// readObjects makes documents of the custom resources of a kind. Where it has no
// definition there are none.
func readObjects(ctx context.Context, objects dynamic.Interface, kind config.Kind) ([]documents.Document, error) {
	list, err := objects.Resource(kind.Resource).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", kind.Resource.Resource, err)
	}
	all := make([]documents.Document, len(list.Items))
	for i := range list.Items {
		object := &list.Items[i]
		unstructured.RemoveNestedField(object.Object, "status")
		data, err := yaml.Marshal(object.Object)
		if err != nil {
			return nil, fmt.Errorf("encode %s %s: %w", kind.Name, object.GetName(), err)
		}
		all[i] = documents.Document{File: kind.Name + " " + object.GetName(), Line: 1, Data: data}
	}
	return all, nil
}
