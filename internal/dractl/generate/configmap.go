package generate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// readLimit bounds the wait for a cluster that does not answer.
const readLimit = 10 * time.Second

// addToConfigMap puts the templates into the ConfigMap, each under a key of its own, beside the keys that the
// ConfigMap has in the cluster. A server-side apply removes the keys that kubectl applied earlier and that
// are missing now, so a ConfigMap with the new templates alone would lose the others.
func (c *command) addToConfigMap(ctx context.Context, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	namespace, name, ok := strings.Cut(c.configMap, "/")
	if !ok || namespace == "" || name == "" {
		return nil, fmt.Errorf("parse --config-map %q: must be NAMESPACE/NAME", c.configMap)
	}
	data, err := c.readOtherKeys(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	others := make([]*unstructured.Unstructured, 0, len(objects))
	for _, object := range objects {
		if object.GetKind() != v1alpha1.ResourcePoolTemplateKind {
			others = append(others, object)
			continue
		}
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			return nil, fmt.Errorf("encode template %s: %w", object.GetName(), err)
		}
		data[object.GetName()+".yaml"] = string(text)
	}
	// The sidecar refuses the ConfigMap whole where two keys have the same template.
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
	if _, refused := config.Snapshot(configMap, nil); len(refused) > 0 {
		return nil, fmt.Errorf("add the templates to the ConfigMap: %w", errors.Join(refused...))
	}
	inner := map[string]any{}
	for key, text := range data {
		inner[key] = text
	}
	return append(others, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": namespace, "name": name}, "data": inner,
	}}), nil
}

// readOtherKeys returns the keys that the ConfigMap has in the cluster. It knows none for a copy, which
// usually is for another cluster, and none without a cluster; then it tells the user how to keep the other
// keys.
func (c *command) readOtherKeys(ctx context.Context, namespace, name string) (map[string]string, error) {
	if c.fromCluster {
		c.tellKeysMissing("the copy may be for another cluster")
		return map[string]string{}, nil
	}
	client, err := c.reach.Client()
	if err != nil {
		c.tellKeysMissing(err)
		return map[string]string{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	live, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	var answered apierrors.APIStatus
	switch {
	case apierrors.IsNotFound(err):
	case errors.As(err, &answered):
		return nil, fmt.Errorf("read ConfigMap %s, whose other keys are to stay: %w", c.configMap, err)
	case err != nil:
		c.tellKeysMissing(err)
	case len(live.BinaryData) > 0:
		return nil, fmt.Errorf("ConfigMap %s has the keys %s under binaryData, which the printed one would not have: save their files as UTF-8, and apply them", c.configMap,
			strings.Join(slices.Sorted(maps.Keys(live.BinaryData)), ", "))
	case live.Data != nil:
		return live.Data, nil
	}
	return map[string]string{}, nil
}

// tellKeysMissing tells the user that the ConfigMap has only the new keys.
func (c *command) tellKeysMissing(why any) {
	c.streams.Tell("ConfigMap %s is printed without the keys that it may have in the cluster (%v): apply it with --field-manager=kwok-dra-%s, or kubectl may remove them\n",
		c.configMap, why, cmp.Or(c.manager, "copy"))
}
