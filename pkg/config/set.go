package config

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	kwokv1alpha1 "sigs.k8s.io/kwok/pkg/apis/v1alpha1"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
)

// Set is all of the configuration in force. It does not change; a new version
// is a new Set.
type Set struct {
	// Templates are the templates of all carriers.
	Templates []*devices.Template
	// Classes are the DeviceClasses that other people's documents want to be there.
	Classes []Class
	*Configuration
	// Unsettled are the errors of documents of which no version is in force though one
	// may have been before the process began. What they may have made stays as it is.
	Unsettled []error

	shared []*devices.Template
	// published has publishWhen hold everywhere.
	published bool
}

// everything is the empty selector, which always holds.
var everything, _ = lifecycle.CompileForNode(&kwokv1alpha1.StageSelector{}, field.NewPath("publishWhen"))

// Published is the set as if publishWhen held everywhere, to see what is
// published once it does.
func (s *Set) Published() *Set {
	published := *s
	published.published = true
	return &published
}

// HasDriver reports whether any template is of the driver.
func (s *Set) HasDriver(driver string) bool {
	return slices.ContainsFunc(s.Templates, func(t *devices.Template) bool { return t.Driver == driver })
}

// Shared are the templates whose pools nodes share.
func (s *Set) Shared() []*devices.Template {
	return s.shared
}

// SharedPool finds the template of a pool that nodes share, or nil.
func (s *Set) SharedPool(driver, pool string) *devices.Template {
	i := slices.IndexFunc(s.shared, func(t *devices.Template) bool { return t.Driver == driver && t.SharedPool() == pool })
	if i < 0 {
		return nil
	}
	return s.shared[i]
}

// PublishWhen is the selector that says when the template's pool is first
// published.
func (s *Set) PublishWhen(t *devices.Template) *lifecycle.Selector {
	if s.published {
		return everything
	}
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

// add adds a template. A pool that nodes share is one template's.
func (s *Set) add(t sourced[*devices.Template]) error {
	s.Templates = append(s.Templates, t.value)
	pool := t.value.SharedPool()
	if pool == "" {
		return nil
	}
	if other := s.SharedPool(t.value.Driver, pool); other != nil {
		return refuse(t.source, objectName(v1alpha1.ResourcePoolTemplateKind, t.value.Name), "spec.poolName",
			"template %s makes the pool %s of driver %s already: give another name", other.Name, pool, t.value.Driver)
	}
	s.shared = append(s.shared, t.value)
	return nil
}

// NewSet puts the documents of all carriers together. Two templates of one
// name, or two configurations that set the same field, are an error that names
// both sources.
func NewSet(carriers ...*Documents) (*Set, error) {
	set := &Set{}
	var errs []error
	templates := map[string]string{}
	var configurations []sourced[*v1alpha1.KwokDRAConfiguration]
	for _, documents := range carriers {
		for _, t := range documents.templates {
			if other, taken := templates[t.value.Name]; taken {
				errs = append(errs, refuse(t.source, objectName(v1alpha1.ResourcePoolTemplateKind, t.value.Name), "metadata.name",
					"also in %s: rename one", other))
			}
			templates[t.value.Name] = t.place(v1alpha1.ResourcePoolTemplateKind, t.value.Name)
			errs = append(errs, set.add(t))
		}
		configurations = append(configurations, documents.configurations...)
		set.Classes = append(set.Classes, documents.classes...)
	}
	document, err := mergeConfigurations(configurations)
	errs = append(errs, err)
	compiled, invalid := newConfiguration(document)
	set.Configuration = compiled
	return set, errors.Join(append(errs, invalid.ToAggregate())...)
}
