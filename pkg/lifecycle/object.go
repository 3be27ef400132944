package lifecycle

import (
	"encoding/json"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Object is a Node or Pod as selectors and templates see it: typed for CEL,
// decoded JSON for jq, encoded JSON for templates. Each form is made on first
// use.
type Object struct {
	name        string
	labels      map[string]string
	annotations map[string]string
	typed       any
	encoded     func() (json.RawMessage, error)
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
	o.encoded = sync.OnceValues(func() (json.RawMessage, error) {
		encoded, err := json.Marshal(typed)
		if err != nil {
			return nil, fmt.Errorf("encode %s %s: %w", kind, meta.Name, err)
		}
		return encoded, nil
	})
	o.decoded = sync.OnceValues(func() (any, error) {
		encoded, err := o.encoded()
		if err != nil {
			return nil, err
		}
		var decoded any
		if err := json.Unmarshal(encoded, &decoded); err != nil {
			return nil, fmt.Errorf("decode %s %s: %w", kind, meta.Name, err)
		}
		return decoded, nil
	})
	return o
}

// Name returns the name of the object.
func (o *Object) Name() string {
	return o.name
}

// Annotations returns the annotations of the object.
func (o *Object) Annotations() map[string]string {
	return o.annotations
}

// Encoded returns the object as JSON.
func (o *Object) Encoded() (json.RawMessage, error) {
	return o.encoded()
}

// Decoded returns the object as decoded JSON, with the types that kwok's jq
// takes. It must not be changed.
func (o *Object) Decoded() (any, error) {
	return o.decoded()
}
