package validation

import (
	"fmt"
	"math"
	"math/big"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/quantity"
)

// maxValidValues is the API server's limit, which its API does not export.
const maxValidValues = 10

func validateCapacities(capacities map[resourcev1.QualifiedName]v1alpha1.Capacity, shared bool, path *field.Path) field.ErrorList {
	return eachOf(path, capacities, func(name resourcev1.QualifiedName, capacity v1alpha1.Capacity, path *field.Path) field.ErrorList {
		errs := validateQualifiedName(string(name), path)
		policy := path.Child("requestPolicy")
		if capacity.RequestPolicy != nil && !shared {
			errs = append(errs, field.Forbidden(policy, "only with allowMultipleAllocations: true on the device"))
		}
		if v1alpha1.IsTemplate(capacity.Value) {
			return append(errs, validatePolicy(capacity.RequestPolicy, nil, policy)...)
		}
		value, err := quantity.Parse(capacity.Value)
		if err != nil {
			return append(errs, field.Invalid(path, capacity.Value, err.Error()))
		}
		return append(errs, validatePolicy(capacity.RequestPolicy, &value, policy)...)
	})
}

// ResolveCapacity makes the upstream capacity from text, the value with templates
// rendered. The error says what text must be.
func ResolveCapacity(c v1alpha1.Capacity, text string) (resourcev1.DeviceCapacity, error) {
	value, err := quantity.Parse(text)
	if err != nil {
		return resourcev1.DeviceCapacity{}, err
	}
	if v1alpha1.IsTemplate(c.Value) {
		err = validatePolicy(c.RequestPolicy, &value, field.NewPath("requestPolicy")).ToAggregate()
	}
	return resourcev1.DeviceCapacity{Value: value, RequestPolicy: c.RequestPolicy}, err
}

// validatePolicy applies the API server's rules for request policies. The
// capacity is nil where it is not known yet.
func validatePolicy(policy *resourcev1.CapacityRequestPolicy, capacity *resource.Quantity, path *field.Path) field.ErrorList {
	switch {
	case policy == nil, len(policy.ValidValues) == 0 && policy.ValidRange == nil:
		return nil
	case len(policy.ValidValues) > 0 && policy.ValidRange != nil:
		return forbidden(path, "validValues and validRange exclude each other")
	case policy.Default == nil:
		return required(path.Child("default"), "what a request takes that does not say how much")
	case policy.ValidRange != nil:
		return validateRange(policy, capacity, path)
	}
	return validateValues(policy, capacity, path.Child("validValues"))
}

func validateValues(policy *resourcev1.CapacityRequestPolicy, capacity *resource.Quantity, path *field.Path) field.ErrorList {
	errs := tooMany(path, len(policy.ValidValues), maxValidValues)
	hasDefault := false
	for i := range policy.ValidValues {
		value, at := &policy.ValidValues[i], path.Index(i)
		hasDefault = hasDefault || value.Cmp(*policy.Default) == 0
		errs = append(errs, atMost(value, capacity, "the capacity", at)...)
		if i == 0 {
			continue
		}
		switch before := &policy.ValidValues[i-1]; {
		case value.Cmp(*before) < 0:
			errs = append(errs, field.Invalid(at, value.String(), fmt.Sprintf("must not be less than the value before it, %s: sort them", before)))
		case value.Cmp(*before) == 0:
			errs = append(errs, field.Duplicate(at, value.String()))
		case value.Value() == before.Value():
			errs = append(errs, field.Invalid(at, value.String(), fmt.Sprintf("must differ from %s when both are rounded up to integers, as without the feature gate DRAFractionalCapacityRange", before)))
		}
	}
	if !hasDefault {
		errs = append(errs, field.Invalid(path, policy.Default.String(), "must include the default"))
	}
	return errs
}

func validateRange(policy *resourcev1.CapacityRequestPolicy, capacity *resource.Quantity, path *field.Path) field.ErrorList {
	given, at := policy.ValidRange, path.Child("validRange")
	if given.Min == nil {
		return required(at.Child("min"), "the least that a request can take")
	}
	errs := atMost(given.Min, capacity, "the capacity", at.Child("min"))
	errs = append(errs, atMost(given.Max, capacity, "the capacity", at.Child("max"))...)
	errs = append(errs, atMost(given.Min, given.Max, "max", at.Child("min"))...)
	errs = append(errs, atMost(policy.Default, given.Max, "max", path.Child("default"))...)
	if policy.Default.Cmp(*given.Min) < 0 {
		errs = append(errs, field.Invalid(path.Child("default"), policy.Default.String(), "must be at least min, "+given.Min.String()))
	}
	return append(errs, validateSteps(policy, capacity, path)...)
}

// validateSteps checks that the steps lead from min to default and max. All are
// rounded up to integers first; with the feature gate DRAFractionalCapacityRange
// (Kubernetes 1.37) thousandths count instead where one has a fraction.
func validateSteps(policy *resourcev1.CapacityRequestPolicy, capacity *resource.Quantity, path *field.Path) field.ErrorList {
	given, at := policy.ValidRange, path.Child("validRange", "step")
	ends := []bound{{policy.Default, path.Child("default")}, {given.Max, path.Child("validRange", "max")}}
	all := slices.Concat(ends, []bound{{given.Min, path.Child("validRange", "min")}, {given.Step, at}})
	milli := slices.ContainsFunc(all, func(b bound) bool { return b.value != nil && isFraction(*b.value) })
	var errs field.ErrorList
	for _, b := range all {
		if b.value != nil && (milli || given.Step != nil) {
			errs = append(errs, validateScale(*b.value, milli, b.path)...)
		}
	}
	if given.Step == nil || len(errs) > 0 {
		return errs
	}
	if given.Step.Sign() <= 0 {
		return invalid(at, given.Step.String(), "must be more than 0")
	}
	first := given.Min.DeepCopy()
	first.Add(*given.Step)
	if capacity != nil && first.Cmp(*capacity) > 0 {
		errs = append(errs, field.Invalid(at, given.Step.String(), fmt.Sprintf("min and one step, %s, must be at most the capacity, %s", &first, capacity)))
	}
	for _, end := range ends {
		errs = append(errs, end.validate(given, milli)...)
	}
	return errs
}

// bound is a number of a policy, and where it stands.
type bound struct {
	value *resource.Quantity
	path  *field.Path
}

// validate checks that some steps lead from min to the number.
func (b bound) validate(given *resourcev1.CapacityRequestPolicyRange, milli bool) field.ErrorList {
	switch {
	case b.value == nil, b.value.Cmp(*given.Min) < 0:
		return nil
	case milli && (b.value.MilliValue()-given.Min.MilliValue())%given.Step.MilliValue() != 0,
		!milli && (b.value.Value()-given.Min.Value())%given.Step.Value() != 0:
		return invalid(b.path, b.value.String(), fmt.Sprintf("must be some steps of %s from min, %s", given.Step, given.Min))
	case (b.value.Value()-given.Min.Value())%given.Step.Value() != 0:
		return invalid(b.path, b.value.String(), fmt.Sprintf("must be some steps of %s from min, %s, also when all are rounded up to integers, as without the feature gate DRAFractionalCapacityRange", given.Step, given.Min))
	}
	return nil
}

// validateScale refuses numbers with which steps cannot be counted.
func validateScale(value resource.Quantity, milli bool, path *field.Path) field.ErrorList {
	switch {
	case value.Sign() < 0:
		return invalid(path, value.String(), "must not be less than 0")
	case value.CmpInt64(math.MaxInt64) > 0:
		return invalid(path, value.String(), "must be an integer of 64 bits")
	case milli && value.Cmp(*resource.NewMilliQuantity(value.MilliValue(), value.Format)) != 0:
		return invalid(path, value.String(), "must be an integer of 64 bits when it is counted in thousandths, since one of the numbers has a fraction")
	}
	return nil
}

func isFraction(value resource.Quantity) bool {
	copied := value.DeepCopy()
	number, ok := new(big.Rat).SetString(copied.AsDec().String())
	return ok && !number.IsInt()
}
