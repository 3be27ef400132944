package lifecycle

import (
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kwok/pkg/utils/expression"
)

// Object is an API object as selectors and templates see it: typed for CEL,
// and as decoded JSON for jq and templates. The JSON is made on first use.
type Object struct {
	name        string
	labels      map[string]string
	annotations map[string]string
	typed       any
	json        func() (any, error)
}

// NodeObject wraps a Node, which must not change afterwards.
func NodeObject(node *corev1.Node) *Object {
	return &Object{
		name:        node.Name,
		labels:      node.Labels,
		annotations: node.Annotations,
		typed:       node,
		json: sync.OnceValues(func() (any, error) {
			decoded, err := expression.ToJSONStandard(node)
			if err != nil {
				return nil, fmt.Errorf("convert node %s: %w", node.Name, err)
			}
			return decoded, nil
		}),
	}
}

// Name returns the name of the object.
func (o *Object) Name() string {
	return o.name
}

// JSON returns the object as decoded JSON. It must not be changed.
func (o *Object) JSON() (any, error) {
	return o.json()
}
