package cached

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Object is an object of type T in a cache that keeps all of it, encoded, which takes
// much less memory.
type Object[T any, P encodable[T]] struct {
	Meta
	// Encoded is all but the resource version: it is equal for objects that differ in
	// nothing else.
	Encoded string
}

// encodable is what the types of the API are by pointer.
type encodable[T any] interface {
	*T
	metav1.Object
	Marshal() ([]byte, error)
	Unmarshal(data []byte) error
}

// Keep makes an Object, and takes the version off the one that it is made from. Where
// its encoded form is as it was before, it is that.
func Keep[T any, P encodable[T]](object P, before string) Object[T, P] {
	kept := Object[T, P]{Meta: MetaOf(object), Encoded: before}
	object.SetResourceVersion("")
	data, err := object.Marshal()
	if err != nil {
		panic(fmt.Sprintf("encode what was decoded: %v", err))
	}
	if string(data) != before {
		kept.Encoded = string(data)
	}
	return kept
}

// Decode returns a copy of the object, with its version.
func (o *Object[T, P]) Decode() P {
	object := P(new(T))
	if err := object.Unmarshal([]byte(o.Encoded)); err != nil {
		panic(fmt.Sprintf("decode what was encoded: %v", err))
	}
	object.SetResourceVersion(o.ResourceVersion)
	return object
}
