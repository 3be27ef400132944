// Package v1alpha1 holds the configuration kinds of kwok-dra, group
// dra.kwok.x-k8s.io: ResourcePoolTemplate says what devices fake nodes have,
// KwokDRAConfiguration says when they appear and go.
//
// The package has the types, their defaults and their validation. Validation
// applies the API server's own rules for ResourceSlices
// (k8s.io/kubernetes/pkg/apis/resource/validation), so that a bad document is
// refused when it is read and not when a slice is published.
//
// +groupName=dra.kwok.x-k8s.io
package v1alpha1
