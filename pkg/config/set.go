package config

import (
	"errors"
	"fmt"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
)

// Set is all of the configuration in force. It does not change; a new version
// is a new Set.
type Set struct {
	// Templates are the templates of all carriers.
	Templates []*devices.Template

	publishWhen, retireWhen *lifecycle.Selector
}

// PublishWhen is the selector that says when the template's pool is first
// published.
func (s *Set) PublishWhen(t *devices.Template) *lifecycle.Selector {
	if t.PublishWhen != nil {
		return t.PublishWhen
	}
	return s.publishWhen
}

// RetireWhen is the selector that says when the template's pool is deleted, or
// nil for never.
func (s *Set) RetireWhen(t *devices.Template) *lifecycle.Selector {
	if t.RetireWhen != nil {
		return t.RetireWhen
	}
	return s.retireWhen
}

// newSet puts the documents of all carriers together. Two templates of one
// name, or two configurations, are an error that names both sources.
func newSet(carriers ...*Documents) (*Set, error) {
	set := &Set{}
	var errs []error
	templates := map[string]string{}
	configurationSource := ""
	for _, documents := range carriers {
		for _, t := range documents.templates {
			if other, taken := templates[t.value.Name]; taken {
				errs = append(errs, fmt.Errorf("%s: %s %q: metadata.name: also in %s: rename one",
					t.source, v1alpha1.ResourcePoolTemplateKind, t.value.Name, other))
			}
			templates[t.value.Name] = t.source
			set.Templates = append(set.Templates, t.value)
		}
		for _, c := range documents.configurations {
			if configurationSource != "" {
				errs = append(errs, fmt.Errorf("%s: %s: there is one already in %s: remove one",
					c.source, v1alpha1.KwokDRAConfigurationKind, configurationSource))
			}
			configurationSource = c.source
			set.publishWhen, set.retireWhen = c.value.publishWhen, c.value.retireWhen
		}
	}
	if configurationSource == "" {
		defaults, problems := compile(&v1alpha1.KwokDRAConfiguration{})
		errs = append(errs, problems.ToAggregate())
		set.publishWhen, set.retireWhen = defaults.publishWhen, defaults.retireWhen
	}
	return set, errors.Join(errs...)
}
