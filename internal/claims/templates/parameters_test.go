package templates

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
	_ "github.com/kwok-dra/kwok-dra/internal/extensions/parameters" // it checks opaque parameters
	"github.com/kwok-dra/kwok-dra/internal/testing/claimstest"
	"github.com/kwok-dra/kwok-dra/internal/testing/configtest"
)

// TestPrepareChecksParameters: a driver looks at parameters of its own, for devices of the
// claim, from the class and the claim.
func TestPrepareChecksParameters(t *testing.T) {
	t.Parallel()
	const (
		class, own = resourcev1.AllocationConfigSourceClass, resourcev1.AllocationConfigSourceClaim
		good, bad  = `{"apiVersion":"g/v1","kind":"Config","level":1}`, `{"apiVersion":"g/v1","kind":"Config","level":"high"}`
		spec       = "  parameters: {errorPrefix: decode config, kinds: [{apiVersion: g/v1, kind: Config, schema: {type: object, properties: {level: {type: integer}}}}]}\n"
		refused    = `NodePrepareResources failed for ResourceClaim c: error preparing devices for claim uid-of-c: decode config: level: Invalid value: must be of type integer, is of type string`
	)
	skipped := claimstest.Device("d", "gpu-0")
	skipped.SkipNodeOperations = []resourcev1.SkipNodeOperation{resourcev1.SkipNodeOperationAll}
	for name, test := range map[string]struct {
		spec    string
		result  resourcev1.DeviceRequestAllocationResult
		configs []resourcev1.DeviceAllocationConfiguration
		want    string
	}{
		"none":             {spec, claimstest.Device("d", "gpu-0"), nil, ""},
		"good":             {spec, claimstest.Device("d", "gpu-0"), []resourcev1.DeviceAllocationConfiguration{parameters(good, class, "d"), parameters(good, own, "d")}, ""},
		"bad claim":        {spec, claimstest.Device("d", "gpu-0"), []resourcev1.DeviceAllocationConfiguration{parameters(good, class, "d"), parameters(bad, own, "d")}, refused},
		"bad class":        {spec, claimstest.Device("d", "gpu-0"), []resourcev1.DeviceAllocationConfiguration{parameters(bad, class, "d"), parameters(good, own, "d")}, refused},
		"another driver's": {spec, claimstest.Device("d", "gpu-0"), []resourcev1.DeviceAllocationConfiguration{parameters(bad, own, "e")}, ""},
		"another request":  {spec, claimstest.Device("d", "gpu-0"), []resourcev1.DeviceAllocationConfiguration{parameters(bad, own, "d", "another")}, ""},
		"not opaque":       {spec, claimstest.Device("d", "gpu-0"), []resourcev1.DeviceAllocationConfiguration{{Source: own}}, ""},
		"no parameters":    {"", claimstest.Device("d", "gpu-0"), []resourcev1.DeviceAllocationConfiguration{parameters(bad, own, "d")}, ""},
		"foreign device":   {spec, claimstest.Device("e", "gpu-0"), []resourcev1.DeviceAllocationConfiguration{parameters(bad, own, "e")}, ""},
		"no such device":   {spec, claimstest.Device("d", "gpu-9"), []resourcev1.DeviceAllocationConfiguration{parameters(bad, own, "d")}, ""},
		"skips prepare":    {spec, skipped, []resourcev1.DeviceAllocationConfiguration{parameters(bad, own, "d")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claim := claimstest.Allocated("c")
			claimstest.Allocate(claim, test.result)
			claim.Status.Allocation.Devices.Config = test.configs
			answer, err := driverOf(configtest.SetOf(t, claimstest.Template("d", test.spec))).Prepare([]*resourcev1.ResourceClaim{claim})
			require.Equal(t, plan.Answered, answer)
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, test.want)
			failure := &plan.Failure{}
			require.ErrorAs(t, err, &failure)
			require.Equal(t, plan.ReasonParameters, failure.Reason)
		})
	}
}
