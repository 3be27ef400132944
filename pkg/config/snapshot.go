package config

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Snapshot is what a sidecar that starts now takes of a ConfigMap, or of none, and of custom
// resources: the set in force, and why documents are refused.
func Snapshot(configMap *corev1.ConfigMap, objects []*unstructured.Unstructured) (*Set, []error) {
	var sources []*source
	if configMap != nil {
		own := &source{}
		own.take((&ConfigMap{decode: decodeConfigMap}).versionOf(configMap))
		sources = append(sources, own)
	}
	c := newCarrier(ObjectsCarrier)
	var versions []version
	for _, object := range objects {
		versions = append(versions, versionOf(object))
	}
	c.take(versions)
	sources = append(sources, c.ordered()...)
	d := decide(sources)
	var refused []error
	for _, one := range sources {
		if err := d.refused[one]; err != nil {
			refused = append(refused, err)
		}
	}
	return d.set, refused
}
