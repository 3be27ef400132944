package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The types of the conditions in ResourcePoolTemplateStatus.
const (
	// ConditionAccepted is True where the newest version of the template is in
	// force, and False, with the cause, where it is refused and the last good one is
	// in force, if there was one.
	ConditionAccepted = "Accepted"
	// ConditionPublished is True where the template's pools are published wherever
	// they should be, and on one node at least.
	ConditionPublished = "Published"
)

// ResourcePoolTemplateStatus is what became of a template that is an object in
// the cluster.
type ResourcePoolTemplateStatus struct {
	// Conditions are Accepted and Published.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Nodes is the number of nodes on which the template's devices are published,
	// or, of a pool that nodes share, 1.
	Nodes int64 `json:"nodes"`
	// Slices is the number of ResourceSlices that have devices or counter sets of
	// the template.
	Slices int64 `json:"slices"`
	// Devices is the number of devices that are published from the template.
	Devices int64 `json:"devices"`
}
