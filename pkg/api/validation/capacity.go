package validation

import (
	"math"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/internal/util/suggest"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// maxValidValues is a limit of the API server that its API does not export.
const maxValidValues = 10

func validateCapacities(capacities map[resourcev1.QualifiedName]v1alpha1.Capacity, shared bool, at checker) {
	checkValues(at, capacities, func(name resourcev1.QualifiedName, capacity v1alpha1.Capacity, at checker) {
		validateQualifiedName(string(name), at)
		policy := at.atField("requestPolicy")
		if capacity.RequestPolicy != nil && !shared {
			policy.addForbidden("only with allowMultipleAllocations: true on the device")
		}
		if v1alpha1.IsTemplate(capacity.Value) {
			validatePolicy(capacity.RequestPolicy, nil, policy)
		} else if value, err := suggest.ParseQuantity(capacity.Value); at.requireThat(err == nil, capacity.Value, "%v", err) {
			validatePolicy(capacity.RequestPolicy, &value, policy)
		}
	})
}

// ResolveCapacity makes the upstream capacity of a text, which is the value with its templates
// rendered. The error says what the text must be.
func ResolveCapacity(c v1alpha1.Capacity, text string) (resourcev1.DeviceCapacity, error) {
	value, err := suggest.ParseQuantity(text)
	if err == nil && c.RequestPolicy != nil && v1alpha1.IsTemplate(c.Value) {
		policy := newChecker(field.NewPath("requestPolicy"))
		validatePolicy(c.RequestPolicy, &value, policy)
		err = policy.errs.ToAggregate()
	}
	return resourcev1.DeviceCapacity{Value: value, RequestPolicy: c.RequestPolicy}, err
}

// validatePolicy applies the API server's rules for request policies. The capacity is nil if it is
// not known yet.
func validatePolicy(policy *resourcev1.CapacityRequestPolicy, capacity *resource.Quantity, at checker) {
	switch {
	case policy == nil, len(policy.ValidValues) == 0 && policy.ValidRange == nil:
	case len(policy.ValidValues) > 0 && policy.ValidRange != nil:
		at.addForbidden("validValues and validRange exclude each other")
	case policy.Default == nil:
		at.atField("default").addRequired("what a request takes that does not say how much")
	case policy.ValidRange != nil:
		validateRange(policy, capacity, at)
	default:
		validateValues(policy, capacity, at.atField("validValues"))
	}
}

func validateValues(policy *resourcev1.CapacityRequestPolicy, capacity *resource.Quantity, at checker) {
	at.tooMany(len(policy.ValidValues), maxValidValues)
	for i := range policy.ValidValues {
		value, at := &policy.ValidValues[i], at.atIndex(i)
		at.atMost(value, capacity, "the capacity")
		if i == 0 {
			continue
		}
		switch before := &policy.ValidValues[i-1]; {
		case value.Cmp(*before) < 0:
			at.addInvalid(value.String(), "must not be less than the value before it, %s: sort them", before)
		case value.Cmp(*before) == 0:
			at.addDuplicate(value.String())
		case value.Value() == before.Value():
			at.addInvalid(value.String(), "must differ from %s when both are rounded up to integers, as without the feature gate DRAFractionalCapacityRange", before)
		}
	}
	at.requireThat(slices.ContainsFunc(policy.ValidValues, policy.Default.Equal), policy.Default.String(), "must include the default")
}

func validateRange(policy *resourcev1.CapacityRequestPolicy, capacity *resource.Quantity, at checker) {
	given, limits := policy.ValidRange, at.atField("validRange")
	if !limits.atField("min").requirePresence(given.Min != nil, "the least that a request can take") {
		return
	}
	limits.atField("min").atMost(given.Min, capacity, "the capacity")
	limits.atField("max").atMost(given.Max, capacity, "the capacity")
	limits.atField("min").atMost(given.Min, given.Max, "max")
	at.atField("default").atMost(policy.Default, given.Max, "max")
	at.atField("default").requireThat(policy.Default.Cmp(*given.Min) >= 0, policy.Default.String(), "must be at least min, %s", given.Min)
	validateSteps(policy, capacity, at)
}

// validateSteps checks that the steps lead from min to default and max, all rounded up to integers.
// If one has a fraction, thousandths count instead, which needs the feature gate
// DRAFractionalCapacityRange of Kubernetes 1.37.
func validateSteps(policy *resourcev1.CapacityRequestPolicy, capacity *resource.Quantity, at checker) {
	given, step, limits := policy.ValidRange, policy.ValidRange.Step, at.atField("validRange")
	ends := []bound{{policy.Default, at.atField("default")}, {given.Max, limits.atField("max")}}
	all := slices.Concat(ends, []bound{{given.Min, limits.atField("min")}, {step, limits.atField("step")}})
	milli, before := slices.ContainsFunc(all, bound.isFraction), at.countErrors()
	for _, b := range all {
		if milli || step != nil {
			b.validateScale(milli)
		}
	}
	if step == nil || at.countErrors() > before || !limits.atField("step").moreThanZero(step) {
		return
	}
	first := given.Min.DeepCopy()
	first.Add(*step)
	limits.atField("step").requireThat(capacity == nil || first.Cmp(*capacity) <= 0, step.String(),
		"min and one step, %s, must be at most the capacity, %s", &first, capacity)
	for _, end := range ends {
		end.validateSteps(given, milli)
	}
}

// bound is a number of a policy, or nil, with its path.
type bound struct {
	value *resource.Quantity
	at    checker
}

// validateSteps checks that a number of steps leads from min to the number.
func (b bound) validateSteps(given *resourcev1.CapacityRequestPolicyRange, milli bool) {
	switch {
	case b.value == nil, b.value.Cmp(*given.Min) < 0:
	case milli && (b.value.MilliValue()-given.Min.MilliValue())%given.Step.MilliValue() != 0,
		!milli && (b.value.Value()-given.Min.Value())%given.Step.Value() != 0:
		b.at.addInvalid(b.value.String(), "must be some steps of %s from min, %s", given.Step, given.Min)
	case (b.value.Value()-given.Min.Value())%given.Step.Value() != 0:
		b.at.addInvalid(b.value.String(), "must be some steps of %s from min, %s, also when all are rounded up to integers, as without the feature gate DRAFractionalCapacityRange", given.Step, given.Min)
	}
}

// validateScale refuses numbers that steps cannot be counted with.
func (b bound) validateScale(milli bool) {
	switch {
	case b.value == nil:
	case b.value.Sign() < 0:
		b.at.notNegative(b.value)
	case b.value.CmpInt64(math.MaxInt64) > 0:
		b.at.addInvalid(b.value.String(), "must be an integer of 64 bits")
	case milli && b.value.Cmp(*resource.NewMilliQuantity(b.value.MilliValue(), b.value.Format)) != 0:
		b.at.addInvalid(b.value.String(), "must be an integer of 64 bits when it is counted in thousandths, since one of the numbers has a fraction")
	}
}

func (b bound) isFraction() bool {
	if b.value == nil {
		return false
	}
	copied := b.value.DeepCopy()
	return !copied.RoundUp(0)
}
