package config

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kwok-dra/kwok-dra/pkg/adapters"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/suggest"
)

// Kind is a kind of custom resources that configuration is read from.
type Kind struct {
	Name     string
	Resource schema.GroupVersionResource

	decode func(source *unstructured.Unstructured) (*Documents, error)
	// annotation is one that counts as the spec does, if there is one.
	annotation string
}

// The kinds of Karpenter that configuration is read from.
const (
	DRAConfigKind   = "DRAConfig"
	NodeOverlayKind = "NodeOverlay"
)

var (
	ownKinds = []Kind{
		{Name: v1alpha1.ResourcePoolTemplateKind, Resource: v1alpha1.GroupVersion.WithResource("resourcepooltemplates"), decode: decodeOwn},
		{Name: v1alpha1.KwokDRAConfigurationKind, Resource: v1alpha1.GroupVersion.WithResource("kwokdraconfigurations"), decode: decodeOwn},
	}
	adaptedKinds = []Kind{
		{
			Name:     DRAConfigKind,
			Resource: schema.GroupVersionResource{Group: "test.karpenter.sh", Version: "v1alpha1", Resource: "draconfigs"},
			decode:   decodeAdapted(adapters.DRAConfig),
		},
		{
			Name:       NodeOverlayKind,
			Resource:   schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1alpha1", Resource: "nodeoverlays"},
			decode:     decodeAdapted(adapters.NodeOverlay),
			annotation: v1alpha1.ResourceSlicesAnnotation,
		},
	}
)

var (
	ownKindNames     = []string{v1alpha1.ResourcePoolTemplateKind, v1alpha1.KwokDRAConfigurationKind}
	adaptedKindNames = []string{DRAConfigKind, NodeOverlayKind}
)

// OwnKinds are ResourcePoolTemplate and KwokDRAConfiguration.
func OwnKinds() []Kind {
	return slices.Clone(ownKinds)
}

// AdaptedKinds finds kinds of Karpenter by their names.
func AdaptedKinds(names ...string) ([]Kind, error) {
	var found []Kind
	for i, name := range names {
		at := slices.IndexFunc(adaptedKinds, func(k Kind) bool { return k.Name == name })
		if at < 0 {
			return nil, fmt.Errorf("unknown kind %q: must be %s or %s%s", name, DRAConfigKind, NodeOverlayKind, didYouMean(name, adaptedKindNames))
		}
		if slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("kind %q is there twice: remove one", name)
		}
		found = append(found, adaptedKinds[at])
	}
	return found, nil
}

// didYouMean proposes the known word that a word is most like.
func didYouMean(word string, known []string) string {
	if nearest := suggest.Nearest(word, known); nearest != "" {
		return "; did you mean " + nearest + "?"
	}
	return ""
}

// kindNamed finds any kind.
func kindNamed(name string) (Kind, bool) {
	all := slices.Concat(ownKinds, adaptedKinds)
	i := slices.IndexFunc(all, func(k Kind) bool { return k.Name == name })
	if i < 0 {
		return Kind{}, false
	}
	return all[i], true
}

// customResource is the source of documents that are objects of their own.
const customResource = "custom resource"

// decodeOwn reads an object of kwok-dra's own kinds. It owns what is made from it,
// so its UID counts.
func decodeOwn(source *unstructured.Unstructured) (*Documents, error) {
	encoded, err := json.Marshal(source.Object)
	if err != nil {
		return nil, fmt.Errorf("encode %s %q: %w", source.GetKind(), source.GetName(), err)
	}
	documents := &Documents{owned: true}
	err = documents.add(customResource, encoded)
	documents.carriedBy(referTo(source))
	return documents, err
}

func referTo(source *unstructured.Unstructured) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: source.GetAPIVersion(), Kind: source.GetKind(), Name: source.GetName(), UID: source.GetUID()}
}
