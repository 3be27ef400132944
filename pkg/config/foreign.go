package config

import (
	"fmt"
	"slices"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// isForeign reports whether an object is of a kind of someone else's, rather than
// one of kwok-dra's with a mistake in its apiVersion.
func isForeign(apiVersion, kind any) bool {
	name, _ := kind.(string)
	return apiVersion != v1alpha1.APIVersion && name != "" && !slices.Contains(ownKindNames, name) && didYouMean(name, ownKindNames) == ""
}

// whatToDo says what to do with an object of someone else's kind.
func whatToDo(kind string) string {
	does := "kubectl apply it"
	switch kind {
	case "ConfigMap":
		does = "kubectl apply it, and name it with --config-map"
	case DRAConfigKind, NodeOverlayKind:
		does = "kubectl apply it, and have it read with --adapters " + kind
	}
	return fmt.Sprintf("this is a %s: %s; kwok-dra reads %s and %s here", kind, does, v1alpha1.ResourcePoolTemplateKind, v1alpha1.KwokDRAConfigurationKind)
}
