package lifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// WipeDelay is how long the kubelet waits for a DRA plugin to come back before it deletes the slices
// of its driver (defaultWipingDelay in pkg/kubelet/cm/dra).
const WipeDelay = 30 * time.Second

// Plugin is the state of a node's DRA plugins by its condition PluginRegistered.
type Plugin int

// The states of plugins.
const (
	PluginUp Plugin = iota
	// PluginSilent is registered, but does not answer.
	PluginSilent
	PluginGone
)

// PluginOf reads the condition. Without it, the plugins of a node are up.
func PluginOf(node *corev1.Node) Plugin {
	for _, condition := range node.Status.Conditions {
		switch {
		case condition.Type != v1alpha1.PluginRegistered:
		case condition.Status == corev1.ConditionTrue:
			return PluginUp
		case condition.Reason == v1alpha1.PluginCrashed && condition.Status == corev1.ConditionUnknown:
			return PluginSilent
		default:
			return PluginGone
		}
	}
	return PluginUp
}
