package lifecycle

import (
	"encoding/json"
	"fmt"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Object is a Node or Pod as selectors and templates see it: typed for CEL, and as
// decoded JSON for jq and templates.
type Object struct {
	metav1.Object

	// Decoded returns the object as decoded JSON, with its numbers as they are written.
	// It is made on first use, and must not be changed.
	Decoded func() (any, error)
}

// NodeObject wraps a Node, which must not change afterwards.
func NodeObject(node *corev1.Node) *Object {
	return newObject("node", node)
}

// PodObject wraps a Pod, which must not change afterwards.
func PodObject(pod *corev1.Pod) *Object {
	return newObject("pod", pod)
}

func newObject(kind string, typed metav1.Object) *Object {
	return &Object{typed, sync.OnceValues(func() (any, error) {
		decoded, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
		if err != nil {
			return nil, fmt.Errorf("decode %s %s: %w", kind, typed.GetName(), err)
		}
		return asWritten(decoded), nil
	})}
}

// asWritten replaces the numbers in a value by what JSON has for them. jq takes no
// int64, and templates print the text.
func asWritten(value any) any {
	switch v := value.(type) {
	case int64:
		return json.Number(strconv.FormatInt(v, 10))
	case map[string]any:
		for key := range v {
			v[key] = asWritten(v[key])
		}
	case []any:
		for i := range v {
			v[i] = asWritten(v[i])
		}
	}
	return value
}

// Slim drops what selectors and templates do not see: managedFields, and
// heartbeats, which would make every renewal a change.
func Slim(node *corev1.Node) {
	node.ManagedFields = nil
	for i := range node.Status.Conditions {
		node.Status.Conditions[i].LastHeartbeatTime = metav1.Time{}
	}
}
