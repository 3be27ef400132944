package lifecycle

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

const (
	// NodeAnnotation has the value FakeValue on nodes that kwok manages by default.
	NodeAnnotation = "kwok.x-k8s.io/node"
	// FakeValue is the value of NodeAnnotation.
	FakeValue = "fake"
	// DefaultAnnotationSelector selects the nodes that kwok manages in a cluster by default.
	DefaultAnnotationSelector = NodeAnnotation + "=" + FakeValue
)

// ManagedNodes selects the nodes that are fake, by kwok's own four options. They exclude each other,
// except for the two selectors: a node must match both. The zero value stands for
// DefaultAnnotationSelector.
type ManagedNodes struct {
	// All selects every node.
	All bool
	// Annotations selects nodes by their annotations. The API server cannot filter by annotation,
	// so all nodes are watched.
	Annotations string
	// Labels selects nodes by their labels. The API server filters by them.
	Labels string
	// Single selects the node of this name.
	Single string

	annotations, labels labels.Selector
}

// Complete checks the options and fills in the default.
func (m *ManagedNodes) Complete() error {
	bySelector := m.Annotations != "" || m.Labels != ""
	if m.All && m.Single != "" || bySelector && (m.All || m.Single != "") {
		return errors.New("choose one of --manage-all-nodes, --manage-single-node, and selectors: --manage-nodes-with-annotation-selector, --manage-nodes-with-label-selector or both")
	}
	if !m.All && m.Single == "" && !bySelector {
		m.Annotations = DefaultAnnotationSelector
	}
	var err error
	if m.labels, err = labels.Parse(m.Labels); err != nil {
		return fmt.Errorf("parse --manage-nodes-with-label-selector %q: %w", m.Labels, err)
	}
	if m.annotations, err = labels.Parse(m.Annotations); err != nil {
		return fmt.Errorf("parse --manage-nodes-with-annotation-selector %q: %w", m.Annotations, err)
	}
	return nil
}

// Matches reports whether a node is fake, even if it was not listed with Tweak. Treat a node that no
// longer matches as deleted: kwok gets no event when a node loses its annotation.
func (m *ManagedNodes) Matches(node *corev1.Node) bool {
	return m.annotations.Matches(labels.Set(node.Annotations)) && m.labels.Matches(labels.Set(node.Labels)) && (m.Single == "" || m.Single == node.Name)
}

// Tweak narrows a list or watch of nodes as far as the API server can filter.
func (m *ManagedNodes) Tweak(options *metav1.ListOptions) {
	options.LabelSelector = m.Labels
	if m.Single != "" {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, m.Single).String()
	}
}

// Hides reports whether a node of this name may exist without being listed with Tweak.
func (m *ManagedNodes) Hides(name string) bool {
	return m.Labels != "" || m.Single != "" && m.Single != name
}

// Identity is equal for equal selections, however they are written. It is empty for the default.
func (m *ManagedNodes) Identity() string {
	canonical := func(s labels.Selector) string { return strings.ReplaceAll(s.String(), "==", "=") }
	parsed := ManagedNodes{All: m.All, Single: m.Single, Labels: canonical(m.labels), Annotations: canonical(m.annotations)}
	if parsed.String() == "annotations "+DefaultAnnotationSelector {
		return ""
	}
	return parsed.String()
}

// String describes the selection, for logs.
func (m *ManagedNodes) String() string {
	switch {
	case m.Single != "":
		return "name " + m.Single
	case m.Labels != "" && m.Annotations != "":
		return "labels " + m.Labels + " and annotations " + m.Annotations
	case m.Labels != "":
		return "labels " + m.Labels
	case m.Annotations != "":
		return "annotations " + m.Annotations
	}
	return "all"
}
