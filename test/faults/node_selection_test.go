package faults

import (
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
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

// unknown reports whether a node has gone, or left the selection, while a sidecar may not
// have seen what another one had prepared there: that one takes it for somebody else's.
func (s *state) unknown(name string) bool {
	others := s.several || s.relaunched && s.nodes[name] == nil
	return others && s.selection.hides(name) && s.node(name) == nil && !s.leavers[name]
}

// forgotten reports whether a node, or, without a name, what belongs to none, may
// have been left by a sidecar that ended: one that was started since, and that asks
// for some nodes only, takes it for somebody else's.
func (s *state) forgotten(name string) bool {
	if !s.relaunched || !s.selection.hides(name) || s.leavers[name] {
		return false
	}
	node := s.nodes[name]
	return name == "" || node != nil && !s.selection.has(node) && hasLeft(node)
}

// nobodys reports whether the workload has removed the owner of slices of a node that is
// gone: they did not go with the node, and a sidecar that was started since takes the node for
// somebody else's.
func (s *state) nobodys(pool []resourcev1.ResourceSlice) bool {
	return !slices.ContainsFunc(pool, func(slice resourcev1.ResourceSlice) bool {
		node := slice.Spec.NodeName
		return len(slice.OwnerReferences) > 0 || node == nil || s.nodes[*node] != nil || !s.unknown(*node)
	})
}
