package devices

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Origin is the document that a template is from. The templates of a document stand or fall
// together.
type Origin struct {
	// Document is how users know it, such as "DRAConfig gpus". It is empty for a
	// ResourcePoolTemplate, which is a document by itself.
	Document string
	// Part is what of the document the template is made from, such as "pool a".
	Part string
	// Carrier is the object in the cluster that has the document, or nil for a file.
	Carrier *corev1.ObjectReference
	// Created is when it was created in the cluster, or zero where it is no object of its own.
	Created time.Time
}

// titleOf is how users know a template.
func titleOf(t *Template) string {
	if t.Origin.Part == "" {
		return documentOf(t)
	}
	return t.Origin.Part + " of " + documentOf(t)
}

// documentOf is how users know the document of a template.
func documentOf(t *Template) string {
	return cmp.Or(t.Origin.Document, "template "+t.Name)
}
