package defaults_test

import (
	"fmt"

	"github.com/kwok-dra/kwok-dra/pkg/api/defaults"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

func ExampleSetResourcePoolTemplate() {
	var template v1alpha1.ResourcePoolTemplate
	defaults.SetResourcePoolTemplate(&template)
	fmt.Println("poolName:", template.Spec.PoolName)
	fmt.Println("claimStatus.mode:", template.Spec.ClaimStatus.Mode)
	fmt.Println("health:", template.Spec.Health)
	// Output:
	// poolName: {{ .Node.metadata.name }}
	// claimStatus.mode: Ready
	// health: Unknown
}
