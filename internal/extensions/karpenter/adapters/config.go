package adapters

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/status"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// The kinds of Karpenter.
const (
	DRAConfigKind   = "DRAConfig"
	NodeOverlayKind = "NodeOverlay"
)

func init() {
	config.RegisterAdaptedKinds(
		config.Kind{
			Name: DRAConfigKind, Resource: schema.GroupVersionResource{Group: "test.karpenter.sh", Version: "v1alpha1", Resource: "draconfigs"},
			Adapt: DRAConfig, PartOf: poolOf,
		},
		config.Kind{
			Name: NodeOverlayKind, Resource: schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1alpha1", Resource: "nodeoverlays"},
			Adapt: NodeOverlay, PartOf: poolOf,
		},
	)
	status.RegisterKind(DRAConfigKind, planDRAConfigStatus)
}

// poolOf names the pool of a DRAConfig that a template is made of.
func poolOf(template *v1alpha1.ResourcePoolTemplate) string {
	if pool := template.Spec.SliceLabels[poolLabel]; pool != "" {
		return "pool " + pool
	}
	return ""
}

// DRAKwokConfigMap is the format of dra-kwok-configmap.
var DRAKwokConfigMap = config.ConfigMapFormat{
	Adapt:  adaptTexts,
	PartOf: func(template *v1alpha1.ResourcePoolTemplate) string { return "template " + template.Name },
}

// configMapKey is the key of dra-kwok-configmap that has its text.
const configMapKey = "config.yaml"

// adaptTexts adapts the texts of dra-kwok-configmap. Without texts, there are no templates.
func adaptTexts(source string, texts map[string][]byte) (*config.Adapted, error) {
	text, has := texts[configMapKey]
	if !has && len(texts) > 0 {
		return nil, fmt.Errorf("%s: data: Required value: the key %s, with driver and mappings", source, configMapKey)
	}
	adapted, err := ConfigMap(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s, key %s: %w", source, configMapKey, err)
	}
	return adapted, nil
}
