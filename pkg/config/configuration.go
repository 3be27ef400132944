package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	kwokv1alpha1 "sigs.k8s.io/kwok/pkg/apis/v1alpha1"

	"github.com/kwok-dra/kwok-dra/pkg/api/defaults"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
)

// Configuration is what all KwokDRAConfigurations say together, made ready for
// use.
type Configuration struct {
	// PrepareWhen, FailWhen and UnprepareWhen select Pods.
	PrepareWhen, FailWhen, UnprepareWhen *lifecycle.Selector
	// Faithful reports whether all of a kubelet's Pod status is written.
	Faithful bool
	// RetryInterval is how long a Pod at least waits after a failure.
	RetryInterval time.Duration
	// BindingDelay is the time from a claim's allocation to its binding conditions.
	BindingDelay time.Duration

	publishWhen, retireWhen *lifecycle.Selector
}

// newConfiguration fills in the defaults and compiles the selectors.
func newConfiguration(document *v1alpha1.KwokDRAConfiguration) (*Configuration, field.ErrorList) {
	defaulted := *document
	defaults.SetKwokDRAConfiguration(&defaulted)
	spec := &defaulted.Spec
	compiled := &Configuration{
		Faithful:      spec.PodStatus == v1alpha1.PodStatusFaithful,
		RetryInterval: spec.RetryInterval.Duration,
		BindingDelay:  spec.BindingDelay.Duration,
	}
	var errs field.ErrorList
	for _, s := range []struct {
		name    string
		source  *kwokv1alpha1.StageSelector
		compile func(*kwokv1alpha1.StageSelector, *field.Path) (*lifecycle.Selector, field.ErrorList)
		into    **lifecycle.Selector
	}{
		{"publishWhen", spec.PublishWhen, lifecycle.CompileForNode, &compiled.publishWhen},
		{"retireWhen", spec.RetireWhen, lifecycle.CompileForNode, &compiled.retireWhen},
		{"prepareWhen", spec.PrepareWhen, lifecycle.CompileForPod, &compiled.PrepareWhen},
		{"failWhen", spec.FailWhen, lifecycle.CompileForPod, &compiled.FailWhen},
		{"unprepareWhen", spec.UnprepareWhen, lifecycle.CompileForPod, &compiled.UnprepareWhen},
	} {
		if s.source == nil {
			continue
		}
		selector, problems := s.compile(s.source, field.NewPath("spec", s.name))
		*s.into, errs = selector, append(errs, problems...)
	}
	return compiled, errs
}

// mergeConfigurations makes one document of several. A field that two of them
// set is an error that names both sources.
func mergeConfigurations(documents []sourced[*v1alpha1.KwokDRAConfiguration]) (*v1alpha1.KwokDRAConfiguration, error) {
	fields, sources := map[string]json.RawMessage{}, map[string]string{}
	var errs []error
	for _, d := range documents {
		set, err := fieldsOf(&d.value.Spec)
		errs = append(errs, err)
		for _, name := range slices.Sorted(maps.Keys(set)) {
			if other, taken := sources[name]; taken {
				errs = append(errs, refuse(d.source, objectName(v1alpha1.KwokDRAConfigurationKind, d.value.Name), "spec."+name,
					"also set in %s: remove one", other))
			}
			fields[name], sources[name] = set[name], d.place(v1alpha1.KwokDRAConfigurationKind, d.value.Name)
		}
	}
	merged := &v1alpha1.KwokDRAConfiguration{}
	encoded, err := json.Marshal(map[string]any{"spec": fields})
	if err == nil {
		err = json.Unmarshal(encoded, merged)
	}
	return merged, errors.Join(append(errs, err)...)
}

// fieldsOf returns the fields that a document sets, by name.
func fieldsOf(spec *v1alpha1.KwokDRAConfigurationSpec) (map[string]json.RawMessage, error) {
	encoded, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("encode configuration: %w", err)
	}
	var fields map[string]json.RawMessage
	return fields, json.Unmarshal(encoded, &fields)
}
