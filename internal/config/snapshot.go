package config

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Snapshot returns the set that a sidecar that starts now would have in force, given a ConfigMap
// or nil and the custom resources, and why documents are refused.
func Snapshot(configMap *corev1.ConfigMap, objects []*unstructured.Unstructured) (*Set, []error) {
	own, custom := newCarrier(""), newCarrier(ObjectsCarrier)
	own.sources = []*source{} // so the ConfigMap is new: nothing of a refused one can be in force yet
	if configMap != nil {
		own.observeSources([]*source{(&ConfigMap{decode: decodeTexts}).sourceOf(configMap)})
	}
	custom.observeSources(sourcesOfObjects(objects))
	sources := slices.Concat(own.sources, custom.sources)
	d := decideVersions(sources)
	var refused []error
	for _, s := range sources {
		if err := d.refused[s]; err != nil {
			refused = append(refused, err)
		}
	}
	return d.set, refused
}
