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
// decoded JSON for jq and templates, which is made on first use.
type Object struct {
	name        string
	labels      map[string]string
	annotations map[string]string
	typed       any
	decoded     func() (any, error)
}

// NodeObject wraps a Node, which must not change afterwards.
func NodeObject(node *corev1.Node) *Object {
	return newObject("node", &node.ObjectMeta, node)
}

// PodObject wraps a Pod, which must not change afterwards.
func PodObject(pod *corev1.Pod) *Object {
	return newObject("pod", &pod.ObjectMeta, pod)
}

func newObject(kind string, meta *metav1.ObjectMeta, typed any) *Object {
	o := &Object{name: meta.Name, labels: meta.Labels, annotations: meta.Annotations, typed: typed}
	o.decoded = sync.OnceValues(func() (any, error) {
		decoded, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
		if err != nil {
			return nil, fmt.Errorf("decode %s %s: %w", kind, meta.Name, err)
		}
		return asWritten(decoded), nil
	})
	return o
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

// Name returns the name of the object.
func (o *Object) Name() string {
	return o.name
}

// Annotations returns the annotations of the object.
func (o *Object) Annotations() map[string]string {
	return o.annotations
}

// Decoded returns the object as decoded JSON, with its numbers as they are written.
// It must not be changed.
func (o *Object) Decoded() (any, error) {
	return o.decoded()
}
