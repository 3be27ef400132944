package lifecycle

import (
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// Object is a Node or Pod as selectors and templates see it: typed for CEL, and decoded JSON for jq
// and templates.
type Object struct {
	metav1.Object

	// Decoded returns the object as decoded JSON, with numbers as they are written. The first call
	// makes it. Do not change it.
	Decoded func() (any, error)
}

// NewObject wraps a Node or a Pod. Do not change it afterwards.
func NewObject(typed metav1.Object) *Object {
	return &Object{typed, sync.OnceValues(func() (any, error) {
		decoded, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
		if err != nil {
			return nil, fmt.Errorf("decode %T %s: %w", typed, typed.GetName(), err)
		}
		return toJSONNumbers(decoded), nil
	})}
}

// toJSONNumbers replaces the integers in a value by JSON numbers: jq does not accept int64, and
// templates print the text.
func toJSONNumbers(value any) any {
	switch v := value.(type) {
	case int64:
		return json.Number(strconv.FormatInt(v, 10))
	case map[string]any:
		for key := range v {
			v[key] = toJSONNumbers(v[key])
		}
	case []any:
		for i := range v {
			v[i] = toJSONNumbers(v[i])
		}
	}
	return value
}

// Slim drops what selectors and templates do not see: managedFields, and heartbeats, whose renewal
// would be a change.
func Slim(node *corev1.Node) {
	node.ManagedFields = nil
	for i := range node.Status.Conditions {
		node.Status.Conditions[i].LastHeartbeatTime = metav1.Time{}
	}
}

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
