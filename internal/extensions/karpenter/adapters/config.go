package adapters

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/status"
	"github.com/kwok-dra/kwok-dra/internal/util/suggest"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// The kinds of Karpenter.
const (
	DRAConfigKind   = "DRAConfig"
	NodeOverlayKind = "NodeOverlay"
)

// kinds are those of Karpenter that are read.
var kinds = []config.Kind{
	{
		Name: DRAConfigKind, Resource: schema.GroupVersionResource{Group: "test.karpenter.sh", Version: "v1alpha1", Resource: "draconfigs"},
		Adapt: DRAConfig, PartOf: poolOf,
	},
	{
		Name: NodeOverlayKind, Resource: schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1alpha1", Resource: "nodeoverlays"},
		Adapt: NodeOverlay, PartOf: poolOf,
	},
}

func init() {
	config.RegisterAdaptedKinds(kinds...)
	status.RegisterKind(DRAConfigKind, planDRAConfigStatus)
}

// Kinds finds kinds of Karpenter by their names.
func Kinds(names ...string) (found []config.Kind, err error) {
	known := []string{DRAConfigKind, NodeOverlayKind}
	for i, name := range names {
		at := slices.Index(known, name)
		if at < 0 {
			hint := ""
			if nearest := suggest.Nearest(name, known); nearest != "" {
				hint = "; did you mean " + nearest + "?"
			}
			return nil, fmt.Errorf("unknown kind %q: must be %s%s", name, strings.Join(known, " or "), hint)
		}
		if slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("kind %q is there twice: remove one", name)
		}
		found = append(found, kinds[at])
	}
	return found, nil
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
