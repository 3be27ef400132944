package snapshot

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/simulator"
)

// TestInterestInExpressions: an expression that may read other attributes than it names keeps them all.
func TestInterestInExpressions(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]struct{ model, index, capacity bool }{
		`device.driver == "a"`:                                                {},
		`device.attributes["a"].model == "H100"`:                              {model: true},
		`device.attributes['a'].?model.orValue("") == "H100"`:                 {model: true},
		`has(device.attributes["a"].model)`:                                   {model: true},
		`device.attributes["a"].model == "x" || device.attributes["b"].other`: {model: true},
		`device.capacity["a"].memory.compareTo(quantity("1Gi")) > 0`:          {capacity: true},
		`"model" in device.attributes["a"]`:                                   {model: true, index: true},
		`device.attributes["a"]["model"] == "x"`:                              {model: true, index: true},
		`device.attributes["a"].exists(name, name == "model")`:                {model: true, index: true},
		`cel.bind(all, device.attributes, all["a"].model == "x")`:             {model: true, index: true},
	} {
		class := &resourcev1.DeviceClass{Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}}}}
		looksAt := &interest{keys: map[string]bool{}}
		looksAt.addWorld(&simulator.World{Classes: []*resourcev1.DeviceClass{class}})
		require.Equal(t, want.model, looksAt.keepsAttribute("model"), expression)
		require.Equal(t, want.index, looksAt.keepsAttribute("a/index"), expression)
		require.Equal(t, want.capacity, looksAt.capacity, expression)
	}
}

// TestInterestOfClaims keeps what constraints compare and what requests want, and asks no claim that has its devices.
func TestInterestOfClaims(t *testing.T) {
	t.Parallel()
	constraint := func(name string) []resourcev1.DeviceConstraint {
		return []resourcev1.DeviceConstraint{{MatchAttribute: new(resourcev1.FullyQualifiedName(name))}}
	}
	waits, has, template := &resourcev1.ResourceClaim{}, &resourcev1.ResourceClaim{}, &resourcev1.ResourceClaimTemplate{}
	waits.Spec.Devices.Constraints, has.Spec.Devices.Constraints = constraint("a/numa"), constraint("a/index")
	has.Status.Allocation = &resourcev1.AllocationResult{}
	template.Spec.Spec.Devices.Requests = []resourcev1.DeviceRequest{{FirstAvailable: []resourcev1.DeviceSubRequest{{Capacity: &resourcev1.CapacityRequirements{}}}}}
	looksAt := &interest{keys: map[string]bool{}}
	looksAt.addWorld(&simulator.World{Claims: []*resourcev1.ResourceClaim{waits, has}, ClaimTemplates: []*resourcev1.ResourceClaimTemplate{template}})
	require.True(t, looksAt.keepsAttribute("numa"))
	require.True(t, looksAt.keepsAttribute("other/numa"), "an answer says where else the name is")
	require.False(t, looksAt.keepsAttribute("a/index"))
	require.True(t, looksAt.capacity)
}
