package cached

import (
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Encoded is an object of type T in its encoded form, which takes much less
// memory, with all that it says. It is a string so that two can be compared:
// equal objects are encoded equally. The zero value is no object.
type Encoded[T any, P encodable[T]] string

// encodable is what the types of the API are by pointer.
type encodable[T any] interface {
	*T
	metav1.Object
	Size() int
	MarshalToSizedBuffer(data []byte) (int, error)
	Unmarshal(data []byte) error
}

// buffers are for encoding: most of what comes is as it was, and is not kept.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// Encode encodes an object. Where that yields what there was before, it is that.
func Encode[T any, P encodable[T]](object P, before Encoded[T, P]) (Encoded[T, P], error) {
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	size := object.Size()
	if cap(*buffer) < size {
		*buffer = make([]byte, size)
	}
	data := (*buffer)[:size]
	// It writes from the end on, and all of it.
	if _, err := object.MarshalToSizedBuffer(data); err != nil {
		return "", err
	}
	if string(data) == string(before) {
		return before, nil
	}
	return Encoded[T, P](data), nil
}

// Decode returns a copy of the object.
func (e Encoded[T, P]) Decode() P {
	object := P(new(T))
	if err := object.Unmarshal([]byte(e)); err != nil {
		panic(fmt.Sprintf("decode what was encoded: %v", err))
	}
	return object
}

// Object is an object of type T in a cache that keeps all of it. It is encoded
// without its version, so that two that differ in nothing else are encoded equally.
type Object[T any, P encodable[T]] struct {
	Meta
	Encoded Encoded[T, P]
}

// Keep makes an Object, and takes the version off the one that it is made from.
// Before is as for Encode.
func Keep[T any, P encodable[T]](object P, before Encoded[T, P]) (Object[T, P], error) {
	kept := Object[T, P]{Meta: MetaOf(object)}
	object.SetResourceVersion("")
	var err error
	kept.Encoded, err = Encode(object, before)
	return kept, err
}

// Decode returns a copy of the object, with its version.
func (o *Object[T, P]) Decode() P {
	object := o.Encoded.Decode()
	object.SetResourceVersion(o.ResourceVersion)
	return object
}
