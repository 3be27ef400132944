package devices

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// Presence knows the driver Pods of templates on all nodes.
type Presence interface {
	// On lists the driver Pods on a node, from a cache.
	On(node string) Pods
	// Live lists the driver Pods of templates on a node, from the API server.
	Live(ctx context.Context, templates []*Template, node *corev1.Node) (Pods, error)
	// Handle calls node with the name of each node whose driver Pods have changed, and all
	// when those of any node may have. Call it before the Pods are watched.
	Handle(node func(name string), all func())
}

// UnknownPresence is the Presence of a program that does not watch driver Pods. None are known, so
// what they have published stays.
type UnknownPresence struct{}

// On implements Presence.
func (UnknownPresence) On(string) Pods {
	return func(*Template) ([]*DriverPod, bool) { return nil, false }
}

// Live implements Presence.
func (u UnknownPresence) Live(context.Context, []*Template, *corev1.Node) (Pods, error) {
	return u.On(""), nil
}

// Handle implements Presence. Nothing changes.
func (UnknownPresence) Handle(func(name string), func()) {}
