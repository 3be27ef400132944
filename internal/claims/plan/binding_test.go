package plan

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/testing/claimstest"
	"github.com/kwok-dra/kwok-dra/internal/testing/configtest"
)

// withConditions is a result with these binding conditions and failure
// conditions.
func withConditions(kinds, failures []string) resourcev1.DeviceRequestAllocationResult {
	gpu := claimstest.Device("d", "gpu-0")
	gpu.BindingConditions, gpu.BindingFailureConditions = kinds, failures
	return gpu
}

// allFake has all nodes fake ones.
type allFake struct{ Nodes }

func (allFake) Has(string) bool { return true }

func TestPendingBindings(t *testing.T) {
	t.Parallel()
	isTrue := func(kinds ...string) []metav1.Condition {
		var conditions []metav1.Condition
		for _, kind := range kinds {
			conditions = append(conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue})
		}
		return conditions
	}
	two := withConditions([]string{"a", "b"}, []string{"x", "y"})
	foreign := two
	foreign.Driver = "other"
	for name, test := range map[string]struct {
		result     resourcev1.DeviceRequestAllocationResult
		conditions []metav1.Condition
		want       bool
	}{
		"no conditions":     {claimstest.Device("d", "gpu-0"), nil, false},
		"foreign":           {foreign, nil, false},
		"no entry":          {two, nil, true},
		"one of two":        {two, isTrue("a"), true},
		"all":               {two, isTrue("b", "a", "c"), false},
		"failed":            {two, isTrue("y"), false},
		"one False":         {two, append(isTrue("a"), metav1.Condition{Type: "b", Status: metav1.ConditionFalse}), true},
		"failure is False":  {two, []metav1.Condition{{Type: "x", Status: metav1.ConditionFalse}}, true},
		"failed afterwards": {two, isTrue("a", "b", "x"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claim := claimstest.Allocated("c")
			claimstest.Allocate(claim, test.result, claimstest.Device("d", "gpu-1"))
			claim.Status.Devices = []resourcev1.AllocatedDeviceStatus{{Driver: "d", Pool: "n", Device: "gpu-1"}}
			if test.conditions != nil {
				claim.Status.Devices = append(claim.Status.Devices, resourcev1.AllocatedDeviceStatus{Driver: "d", Pool: "n", Device: "gpu-0", Conditions: test.conditions})
			}
			v := &ClaimView{Claim: claim, Nodes: allFake{}, Set: configtest.SetOf(t, claimstest.Template("d", ""))}
			_, isPending := v.ownBindingResults()
			require.Equal(t, test.want, isPending)
		})
	}
}

func TestBindingEntry(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		result  resourcev1.DeviceRequestAllocationResult
		failure string
		want    []metav1.Condition
	}{
		"all": {withConditions([]string{"a", "b"}, []string{"x"}), "", []metav1.Condition{
			{Type: "a", Status: metav1.ConditionTrue, Reason: "Bound", Message: "device is ready to be bound"},
			{Type: "b", Status: metav1.ConditionTrue, Reason: "Bound", Message: "device is ready to be bound"},
		}},
		"failure": {withConditions([]string{"a", "b"}, []string{"x", "y"}), "broken", []metav1.Condition{
			{Type: "x", Status: metav1.ConditionTrue, Reason: "BindingFailed", Message: "broken"},
		}},
		"cannot fail": {withConditions([]string{"a"}, nil), "broken", []metav1.Condition{
			{Type: "a", Status: metav1.ConditionTrue, Reason: "Bound", Message: "device is ready to be bound"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := claimstest.Share("s", test.result)
			entry := bindingEntry(&result, test.failure)
			require.Equal(t, facts.DeviceID{Driver: "d", Pool: "n", Device: "gpu-0", Share: "s"}, facts.EntryID(&entry))
			require.Equal(t, test.want, entry.Conditions)
			entry = bindingEntry(&test.result, test.failure)
			require.Nil(t, entry.ShareID)
		})
	}
}
