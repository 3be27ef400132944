package validation_test

import (
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/pkg/api/defaults"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/api/validation"
)

// Check a template without a cluster. Defaults come first: validation expects them.
func ExampleValidateResourcePoolTemplate() {
	var template v1alpha1.ResourcePoolTemplate
	if err := yaml.UnmarshalStrict([]byte(`
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: ResourcePoolTemplate
metadata: {name: h100}
spec:
  driver: gpu.example.com
  devices: [{name: GPU, count: 8}]
`), &template); err != nil {
		panic(err)
	}
	defaults.SetResourcePoolTemplate(&template)
	for _, problem := range validation.ValidateResourcePoolTemplate(&template) {
		fmt.Println(problem)
	}
	// Output: spec.devices[0].name: Invalid value: "GPU": must be a DNS label: lower-case letters, digits and inner "-"; use "gpu"
}
