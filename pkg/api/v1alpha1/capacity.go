package v1alpha1

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	sigsjson "sigs.k8s.io/json"
)

// Capacity is one capacity of a device: a quantity, or a template that yields
// one. In JSON it is a quantity, or an object with the fields value and
// requestPolicy.
//
// +kubebuilder:validation:Type=""
// +kubebuilder:pruning:PreserveUnknownFields
type Capacity struct {
	// Value is the quantity as text, or a template that yields it.
	Value string `json:"-"`
	// RequestPolicy as in resource.k8s.io/v1: how much of the capacity a request
	// may take. It needs DeviceTemplate.AllowMultipleAllocations.
	RequestPolicy *resourcev1.CapacityRequestPolicy `json:"-"`
}

// CapacityObject is a Capacity that is written as an object.
//
// +kubebuilder:object:generate=false
type CapacityObject struct {
	Value         QuantityTemplate                  `json:"value"`
	RequestPolicy *resourcev1.CapacityRequestPolicy `json:"requestPolicy,omitempty"`
}

// ObjectForm is what an object is decoded into.
func (Capacity) ObjectForm() any {
	return CapacityObject{}
}

// QuantityTemplate is a quantity as text, or a template that yields it.
type QuantityTemplate string

// UnmarshalJSON reads a string or a number.
func (q *QuantityTemplate) UnmarshalJSON(data []byte) error {
	value, err := decodeNumbers(data)
	if err != nil {
		return err
	}
	switch v := value.(type) {
	case string:
		*q = QuantityTemplate(v)
	case json.Number:
		*q = QuantityTemplate(v)
	default:
		return errors.New("must be a quantity, for example 80Gi")
	}
	return nil
}

// UnmarshalJSON reads a quantity or an upstream DeviceCapacity.
func (c *Capacity) UnmarshalJSON(data []byte) error {
	var form CapacityObject
	if bytes.HasPrefix(data, []byte("{")) {
		if err := sigsjson.UnmarshalCaseSensitivePreserveInts(data, &form); err != nil {
			return err
		}
	} else if err := form.Value.UnmarshalJSON(data); err != nil {
		return fmt.Errorf("%w, or an object with the field value, and requestPolicy where it is shared", err)
	}
	*c = Capacity{Value: string(form.Value), RequestPolicy: form.RequestPolicy}
	return nil
}

// MarshalJSON writes the upstream form.
func (c Capacity) MarshalJSON() ([]byte, error) {
	return json.Marshal(CapacityObject{Value: QuantityTemplate(c.Value), RequestPolicy: c.RequestPolicy})
}
