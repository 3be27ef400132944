package validation

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/internal/util/fieldcheck"
	"github.com/kwok-dra/kwok-dra/internal/util/suggest"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

func validateAttribute(name resourcev1.QualifiedName, attribute v1alpha1.Attribute, at fieldcheck.Checker) {
	validateQualifiedName(string(name), at)
	if v1alpha1.IsTemplate(attribute.Value) {
		return
	}
	if _, err := ResolveAttribute(attribute, attribute.Value); err != nil {
		at.AddInvalid(shownValue(attribute), "%v", err)
	}
}

// shownValue returns the value of an attribute as an error shows it: without the type.
func shownValue(attribute v1alpha1.Attribute) any {
	var typed map[string]json.RawMessage
	encoded, err := json.Marshal(attribute)
	if err != nil || json.Unmarshal(encoded, &typed) != nil {
		return attribute.Value
	}
	return typed[string(attribute.Type)]
}

// semver is the API server's rule for version attributes: semver.org 2.0.0 with all three numbers.
var semver = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)` +
	`(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?` +
	`(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$`)

// ResolveAttribute makes the upstream attribute of a text, which is the value with its templates
// rendered. The error says what the text must be.
func ResolveAttribute(a v1alpha1.Attribute, text string) (resolved resourcev1.DeviceAttribute, err error) {
	if element, isList := a.Type.Element(); isList {
		for i, part := range (v1alpha1.Attribute{Value: text}).Elements() {
			scalar, err := ResolveAttribute(v1alpha1.Attribute{Type: element}, part)
			switch {
			case err != nil:
				return resourcev1.DeviceAttribute{}, fmt.Errorf("element %d %w", i, err)
			case scalar.StringValue != nil:
				resolved.StringValues = append(resolved.StringValues, *scalar.StringValue)
			case scalar.IntValue != nil:
				resolved.IntValues = append(resolved.IntValues, *scalar.IntValue)
			case scalar.BoolValue != nil:
				resolved.BoolValues = append(resolved.BoolValues, *scalar.BoolValue)
			case scalar.VersionValue != nil:
				resolved.VersionValues = append(resolved.VersionValues, *scalar.VersionValue)
			}
		}
		return resolved, nil
	}
	trimmed := strings.TrimSpace(text)
	switch a.Type {
	case v1alpha1.AttributeString:
		resolved.StringValue = &text
	case v1alpha1.AttributeVersion:
		if !semver.MatchString(text) {
			return resolved, errors.New("must be a version of semver.org 2.0.0, three numbers without leading zeros" +
				proposeValue(suggest.Version(text), semver.MatchString))
		}
		resolved.VersionValue = &text
	case v1alpha1.AttributeInt:
		i, err := strconv.ParseInt(trimmed, 10, 64)
		if err == nil {
			return resourcev1.DeviceAttribute{IntValue: &i}, nil
		}
		message := "must be an integer of 64 bits, for example 42"
		if _, err := strconv.ParseFloat(text, 64); err == nil && suggest.Version(text) != "" {
			message += "; put it in quotes for a string, or use {version: " + suggest.Version(text) + "}"
		}
		return resolved, errors.New(message)
	case v1alpha1.AttributeBool:
		if trimmed != "true" && trimmed != "false" {
			return resolved, errors.New("must be true or false")
		}
		return resourcev1.DeviceAttribute{BoolValue: new(trimmed == "true")}, nil
	default:
		return resolved, fmt.Errorf("has the unknown type %q", a.Type)
	}
	if len(text) > resourcev1.DeviceAttributeMaxValueLength {
		err = fmt.Errorf("must be at most %d bytes, is %d", resourcev1.DeviceAttributeMaxValueLength, len(text))
	}
	return resolved, err
}

// maxValidValues is a limit of the API server that its API does not export.
const maxValidValues = 10

// ResolveCapacity makes the upstream capacity of a text, which is the value with its templates
// rendered. The error says what the text must be.
func ResolveCapacity(c v1alpha1.Capacity, text string) (resourcev1.DeviceCapacity, error) {
	value, err := suggest.ParseQuantity(text)
	if err == nil && c.RequestPolicy != nil && v1alpha1.IsTemplate(c.Value) {
		policy := fieldcheck.New(field.NewPath("requestPolicy"))
		validatePolicy(c.RequestPolicy, &value, policy)
		err = policy.Errors().ToAggregate()
	}
	return resourcev1.DeviceCapacity{Value: value, RequestPolicy: c.RequestPolicy}, err
}

// validatePolicy applies the API server's rules for request policies. The capacity is nil if it is
// not known yet.
func validatePolicy(policy *resourcev1.CapacityRequestPolicy, capacity *resource.Quantity, at fieldcheck.Checker) {
	switch {
	case policy == nil, len(policy.ValidValues) == 0 && policy.ValidRange == nil:
		return
	case len(policy.ValidValues) > 0 && policy.ValidRange != nil:
		at.Forbid(true, "validValues and validRange exclude each other")
		return
	case policy.Default == nil:
		at.AtField("default").RequirePresence(false, "what a request takes that does not say how much")
		return
	case policy.ValidRange != nil:
		validateRange(policy, capacity, at)
		return
	}
	values := at.AtField("validValues")
	values.LimitItems(len(policy.ValidValues), maxValidValues)
	for i := range policy.ValidValues {
		value, before, at := &policy.ValidValues[i], &policy.ValidValues[max(0, i-1)], values.AtIndex(i)
		at.LimitQuantity(value, capacity, "the capacity")
		switch {
		case i == 0:
		case value.Cmp(*before) < 0:
			at.AddInvalid(value.String(), "must not be less than the value before it, %s: sort them", before)
		case value.Cmp(*before) == 0:
			at.AddErrors(field.Duplicate(at.Path, value.String()))
		case value.Value() == before.Value():
			at.AddInvalid(value.String(), "must differ from %s when both are rounded up to integers, as without the feature gate DRAFractionalCapacityRange", before)
		}
	}
	values.RequireThat(slices.ContainsFunc(policy.ValidValues, policy.Default.Equal), policy.Default.String(), "must include the default")
}

// validateRange checks that steps lead from min to default and max, all rounded up to integers. If
// one has a fraction, thousandths count instead, which needs the feature gate
// DRAFractionalCapacityRange of Kubernetes 1.37.
func validateRange(policy *resourcev1.CapacityRequestPolicy, capacity *resource.Quantity, at fieldcheck.Checker) {
	type number struct {
		*resource.Quantity
		at fieldcheck.Checker
	}
	limits := at.AtField("validRange")
	standard := number{policy.Default, at.AtField("default")}
	least, most := number{policy.ValidRange.Min, limits.AtField("min")}, number{policy.ValidRange.Max, limits.AtField("max")}
	step := number{policy.ValidRange.Step, limits.AtField("step")}
	if !least.at.RequirePresence(least.Quantity != nil, "the least that a request can take") {
		return
	}
	least.at.LimitQuantity(least.Quantity, capacity, "the capacity")
	most.at.LimitQuantity(most.Quantity, capacity, "the capacity")
	least.at.LimitQuantity(least.Quantity, most.Quantity, "max")
	standard.at.LimitQuantity(standard.Quantity, most.Quantity, "max")
	standard.at.RequireThat(standard.Cmp(*least.Quantity) >= 0, standard.String(), "must be at least min, %s", least)
	all := slices.DeleteFunc([]number{standard, most, least, step}, func(n number) bool { return n.Quantity == nil })
	hasFraction := slices.ContainsFunc(all, func(n number) bool { return !new(n.DeepCopy()).RoundUp(0) })
	if step.Quantity == nil && !hasFraction {
		return
	}
	before := len(at.Errors())
	for _, n := range all {
		switch {
		case n.Sign() < 0:
			n.at.RequireNotNegative(n.Quantity)
		case n.CmpInt64(math.MaxInt64) > 0:
			n.at.AddInvalid(n.String(), "must be an integer of 64 bits")
		case hasFraction && n.Cmp(*resource.NewMilliQuantity(n.MilliValue(), n.Format)) != 0:
			n.at.AddInvalid(n.String(), "must be an integer of 64 bits when it is counted in thousandths, since one of the numbers has a fraction")
		}
	}
	if step.Quantity == nil || len(at.Errors()) > before || !step.at.RequirePositive(step.Quantity) {
		return
	}
	first := least.DeepCopy()
	first.Add(*step.Quantity)
	step.at.RequireThat(capacity == nil || first.Cmp(*capacity) <= 0, step.String(),
		"min and one step, %s, must be at most the capacity, %s", &first, capacity)
	for _, end := range all[:len(all)-1] { // without step itself
		switch wholeSteps := (end.Value()-least.Value())%step.Value() == 0; {
		case end.Cmp(*least.Quantity) < 0: // reported already
		case hasFraction && (end.MilliValue()-least.MilliValue())%step.MilliValue() != 0, !hasFraction && !wholeSteps:
			end.at.AddInvalid(end.String(), "must be some steps of %s from min, %s", step, least)
		case !wholeSteps:
			end.at.AddInvalid(end.String(), "must be some steps of %s from min, %s, also when all are rounded up to integers, as without the feature gate DRAFractionalCapacityRange", step, least)
		}
	}
}
