// Package v1alpha1 holds the configuration kinds of kwok-dra, group
// dra.kwok.x-k8s.io: ResourcePoolTemplate says what devices fake nodes have,
// KwokDRAConfiguration says when they appear and go.
//
// The package has the types and the names of labels, annotations, conditions and
// events. Defaults are in pkg/api/defaults, and rules in pkg/api/validation.
// docs/reference/stability.md says what may change.
//
// +groupName=dra.kwok.x-k8s.io
// +kubebuilder:object:generate=true
package v1alpha1
