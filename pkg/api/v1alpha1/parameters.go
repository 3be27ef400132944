package v1alpha1

import "k8s.io/apimachinery/pkg/runtime"

// Parameters says which opaque parameters a driver takes from DeviceClasses and
// claims. What does not fit fails the preparation of the claim.
type Parameters struct {
	// Kinds are those that the driver knows. Default: none, and the driver takes no
	// parameters.
	Kinds []ParametersKind `json:"kinds,omitempty"`

	// ErrorPrefix is what the driver says before the reason why parameters do not
	// fit. Default: error decoding config parameters.
	ErrorPrefix string `json:"errorPrefix,omitempty"`
}

// ParametersKind is one kind of parameters.
type ParametersKind struct {
	// APIVersion is that of the parameters, for example
	// gpu.resource.example.com/v1alpha1. Required.
	//
	// +kubebuilder:validation:MinLength=1
	APIVersion string `json:"apiVersion"`

	// Kind is that of the parameters, for example GpuConfig. Required.
	//
	// +kubebuilder:validation:MinLength=1
	Kind string `json:"kind"`

	// Schema is the OpenAPI v3 schema of the parameters, in the structural form of
	// custom resource definitions, with or without apiVersion and kind. A field that
	// it does not have is unknown. Default: any fields.
	//
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Schema *Schema `json:"schema,omitempty"`
}

// SchemaType is the type of a value in JSON.
type SchemaType string

// The types of values in JSON.
const (
	SchemaObject  SchemaType = "object"
	SchemaArray   SchemaType = "array"
	SchemaString  SchemaType = "string"
	SchemaInteger SchemaType = "integer"
	SchemaNumber  SchemaType = "number"
	SchemaBoolean SchemaType = "boolean"
)

// Schema is the part of JSONSchemaProps in apiextensions.k8s.io/v1 that says what is valid.
type Schema struct {
	Type                 SchemaType             `json:"type,omitempty"`
	Properties           map[string]Schema      `json:"properties,omitempty"`
	AdditionalProperties *Schema                `json:"additionalProperties,omitempty"`
	Required             []string               `json:"required,omitempty"`
	Items                *Schema                `json:"items,omitempty"`
	Enum                 []runtime.RawExtension `json:"enum,omitempty"`

	Title       string                `json:"title,omitempty"`
	Description string                `json:"description,omitempty"`
	Default     *runtime.RawExtension `json:"default,omitempty"`
	Example     *runtime.RawExtension `json:"example,omitempty"`
	Nullable    bool                  `json:"nullable,omitempty"`

	Format           string   `json:"format,omitempty"`
	Pattern          string   `json:"pattern,omitempty"`
	MinLength        *int64   `json:"minLength,omitempty"`
	MaxLength        *int64   `json:"maxLength,omitempty"`
	Minimum          *float64 `json:"minimum,omitempty"`
	ExclusiveMinimum bool     `json:"exclusiveMinimum,omitempty"`
	Maximum          *float64 `json:"maximum,omitempty"`
	ExclusiveMaximum bool     `json:"exclusiveMaximum,omitempty"`
	MultipleOf       *float64 `json:"multipleOf,omitempty"`
	MinItems         *int64   `json:"minItems,omitempty"`
	MaxItems         *int64   `json:"maxItems,omitempty"`
	UniqueItems      bool     `json:"uniqueItems,omitempty"`
	MinProperties    *int64   `json:"minProperties,omitempty"`
	MaxProperties    *int64   `json:"maxProperties,omitempty"`

	AllOf []Schema `json:"allOf,omitempty"`
	AnyOf []Schema `json:"anyOf,omitempty"`
	OneOf []Schema `json:"oneOf,omitempty"`
	Not   *Schema  `json:"not,omitempty"`

	// PreserveUnknownFields lets an object have fields that the schema does not have.
	PreserveUnknownFields bool `json:"x-kubernetes-preserve-unknown-fields,omitempty"`
	// IntOrString is in place of Type where a value is an integer or a string.
	IntOrString bool `json:"x-kubernetes-int-or-string,omitempty"`
}
