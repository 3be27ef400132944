package v1alpha1

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	sigsjson "sigs.k8s.io/json"

	"github.com/kwok-dra/kwok-dra/pkg/suggest"
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

	// problem is what is wrong with the JSON that was read, as in Attribute.
	problem error `json:"-"`
}

const capacityForms = "must be a quantity, for example 80Gi, or an object with the field value, and requestPolicy where it is shared"

// CapacityObject has the fields of a Capacity that is written as an object.
type CapacityObject struct {
	// Value is a quantity or a template.
	Value json.RawMessage `json:"value"`
	// RequestPolicy as in resource.k8s.io/v1.
	RequestPolicy *resourcev1.CapacityRequestPolicy `json:"requestPolicy,omitempty"`
}

// ObjectForm returns what an object is decoded into.
func (Capacity) ObjectForm() any {
	return CapacityObject{}
}

// UnmarshalJSON reads a quantity or an upstream DeviceCapacity. What is neither
// is kept as it is, for Resolve and validation to report.
func (c *Capacity) UnmarshalJSON(data []byte) error {
	form := CapacityObject{Value: data}
	value, err := decodeNumbers(data)
	if err != nil {
		return err
	}
	if _, isObject := value.(map[string]any); isObject {
		form.Value = nil
		strict, problem := sigsjson.UnmarshalStrict(data, &form)
		if err = errors.Join(append(strict, problem)...); err == nil && form.Value != nil {
			value, err = decodeNumbers(form.Value)
		}
	}
	*c = Capacity{RequestPolicy: form.RequestPolicy}
	switch v := value.(type) {
	case string:
		c.Value = v
	case json.Number:
		c.Value = v.String()
	default:
		err = cmp.Or(err, errors.New(capacityForms))
	}
	if err != nil {
		*c = Capacity{Value: string(data), problem: err}
	}
	return nil
}

// shown is the value as an error shows it.
func (c Capacity) shown() any {
	if c.problem != nil && json.Valid([]byte(c.Value)) {
		return json.RawMessage(c.Value)
	}
	return c.Value
}

// MarshalJSON writes the upstream form.
func (c Capacity) MarshalJSON() ([]byte, error) {
	value, err := json.Marshal(c.Value)
	if err != nil {
		return nil, fmt.Errorf("encode capacity: %w", err)
	}
	return json.Marshal(CapacityObject{Value: value, RequestPolicy: c.RequestPolicy})
}

// Resolve makes the upstream capacity from text, the value with templates
// rendered. The error says what text must be.
func (c Capacity) Resolve(text string) (resourcev1.DeviceCapacity, error) {
	if c.problem != nil {
		return resourcev1.DeviceCapacity{}, c.problem
	}
	quantity, err := ParseQuantity(text)
	if err != nil {
		return resourcev1.DeviceCapacity{}, err
	}
	if IsTemplate(c.Value) {
		err = validatePolicy(c.RequestPolicy, &quantity, field.NewPath("requestPolicy")).ToAggregate()
	}
	return resourcev1.DeviceCapacity{Value: quantity, RequestPolicy: c.RequestPolicy}, err
}

// exponent finds exponents with which arithmetic would never end.
var exponent = regexp.MustCompile(`[eE][-+]?\d{3,}$`)

// ParseQuantity parses a quantity. The error says what text must be.
func ParseQuantity(text string) (resource.Quantity, error) {
	trimmed := strings.TrimSpace(text)
	if !exponent.MatchString(trimmed) {
		if quantity, err := resource.ParseQuantity(trimmed); err == nil {
			return quantity, nil
		}
	}
	either := ""
	if binary := suggest.BinaryQuantity(text); binary != "" {
		either = fmt.Sprintf(", or %q for binary units", binary)
	}
	return resource.Quantity{}, errors.New("must be a quantity, for example 80Gi" + use(suggest.Quantity(text), isQuantity) + either)
}

func isQuantity(text string) bool {
	_, err := resource.ParseQuantity(text)
	return err == nil
}
