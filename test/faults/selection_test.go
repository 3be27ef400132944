package faults

import (
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
)

// chosenKey is the label or annotation of nodes that a selection is for.
const (
	chosenKey   = "example.com/kwok-dra"
	chosenValue = "on"
)

// selection says which nodes the sidecars act for. The zero value selects those
// with kwok's annotation, as the sidecar does by default.
type selection struct {
	// by is what is selected by: "annotations", "labels", or "" by default.
	by string
	// single is the name of the only node, if there is but one.
	single string
}

func newSelection(random *rand.Rand, firstNode string) selection {
	switch random.IntN(6) {
	case 0, 1:
		return selection{by: "labels"}
	case 2:
		return selection{by: "annotations"}
	case 3:
		return selection{single: firstNode}
	}
	return selection{}
}

func (s *selection) arguments() []string {
	switch {
	case s.single != "":
		return []string{"--manage-single-node", s.single}
	case s.by == "labels":
		return []string{"--manage-nodes-with-label-selector", chosenKey + "=" + chosenValue}
	case s.by == "annotations":
		return []string{"--manage-nodes-with-annotation-selector", chosenKey + "=" + chosenValue}
	}
	return nil
}

// narrow reports whether the server is asked for some nodes only. A sidecar that
// was not there before does not tell what is left of others from what is somebody
// else's.
func (s *selection) narrow() bool { return s.hides("") }

// hides reports whether a node may exist that the server is not asked for.
func (s *selection) hides(name string) bool {
	return s.by == "labels" || s.single != "" && s.single != name
}

func (s *selection) has(node *corev1.Node) bool {
	switch {
	case s.single != "":
		return node.Name == s.single
	case s.by == "labels":
		return node.Labels[chosenKey] == chosenValue
	case s.by == "annotations":
		return node.Annotations[chosenKey] == chosenValue
	}
	return node.Annotations[fakeAnnotation] == "fake"
}

// leftAnnotation is on nodes that have once left the selection. What was prepared
// on them may have been withdrawn since.
const leftAnnotation = "example.com/left"

// patch has a node enter the selection or leave it, or is nil where none can.
func (s *selection) patch(enter bool) map[string]any {
	if s.by == "" {
		return nil
	}
	var value any
	if enter {
		value = chosenValue
	}
	metadata := map[string]any{s.by: map[string]any{chosenKey: value}}
	if !enter {
		annotations, _ := metadata["annotations"].(map[string]any)
		if annotations == nil {
			annotations = map[string]any{}
		}
		annotations[leftAnnotation] = "true"
		metadata["annotations"] = annotations
	}
	return metadata
}
