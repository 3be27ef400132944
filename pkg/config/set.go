package config

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kwokv1alpha1 "sigs.k8s.io/kwok/pkg/apis/v1alpha1"

	"github.com/kwok-dra/kwok-dra/pkg/api/defaults"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
)

// Set is all of the configuration in force. It does not change; a new version is a new Set.
type Set struct {
	// Templates are the templates of all carriers.
	Templates []*devices.Template
	// Classes are the DeviceClasses that other people's documents want to be there.
	Classes []Class
	*Configuration
	// Unsettled are the errors of documents of which no version is in force though one
	// may have been before the process began. What they may have made stays as it is.
	Unsettled []error

	documents []*Documents
	shared    []*devices.Template
	// total is what the templates make.
	total devices.Total
	// published has publishWhen hold everywhere.
	published bool
	// named reports whether driver Pods say that a driver is called that. It is nil where
	// none may.
	named func(driver string) bool
}

// Class is a DeviceClass that is to be there.
type Class struct {
	resourcev1.DeviceClass
	// For refers to the object that wants it, and that is told of problems.
	For *corev1.ObjectReference
}

// Configuration is what all KwokDRAConfigurations say together, made ready for use.
type Configuration struct {
	// PrepareWhen, FailWhen and UnprepareWhen select Pods.
	PrepareWhen, FailWhen, UnprepareWhen *lifecycle.Selector
	// Faithful reports whether all of a kubelet's Pod status is written.
	Faithful bool
	// RetryInterval is how long a Pod at least waits after a failure.
	RetryInterval time.Duration
	// BindingDelay is the time from a claim's allocation to its binding conditions.
	BindingDelay time.Duration
	// PluginsDir has the folders of nodes for the plugins of real drivers, or is empty.
	PluginsDir string
	// ContainerView is shared with kwok, or is empty.
	ContainerView string

	publishWhen, retireWhen *lifecycle.Selector
}

// NewSet puts the documents of all carriers together. Two templates of one
// name, or two configurations that set the same field, are an error that names
// both sources.
func NewSet(carriers ...*Documents) (*Set, error) {
	set := &Set{documents: carriers}
	var errs []error
	templates := map[string]string{}
	var configurations []sourced[*v1alpha1.KwokDRAConfiguration]
	for _, documents := range carriers {
		for _, t := range documents.templates {
			if other, taken := templates[t.value.Name]; taken {
				errs = append(errs, t.refuse("metadata.name", "also in %s: rename one", other))
			}
			templates[t.value.Name] = t.String()
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

// add adds a template. A pool that nodes share is one template's, and all make no more than they
// may.
func (s *Set) add(t sourced[*devices.Template]) error {
	s.Templates = append(s.Templates, t.value)
	s.total.Add(t.value)
	if excess := s.total.Excess(); excess != "" {
		return t.refuse("spec.devices", "Forbidden: %s", excess)
	}
	pool := t.value.SharedPool()
	if pool == "" {
		return nil
	}
	if other := s.SharedPool(t.value.Driver, pool); other != nil {
		return t.refuse("spec.poolName", "template %s makes the pool %s of driver %s already: give another name",
			other.Name, pool, t.value.Driver)
	}
	s.shared = append(s.shared, t.value)
	return nil
}

// mergeConfigurations makes one document of several, of which no two may set one field.
func mergeConfigurations(documents []sourced[*v1alpha1.KwokDRAConfiguration]) (*v1alpha1.KwokDRAConfiguration, error) {
	fields, places := map[string]any{}, map[string]string{}
	var errs []error
	for _, d := range documents {
		set, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&d.value.Spec)
		errs = append(errs, err)
		for _, name := range slices.Sorted(maps.Keys(set)) {
			if other, taken := places[name]; taken {
				errs = append(errs, d.refuse("spec."+name, "also set in %s: remove one", other))
			}
			fields[name], places[name] = set[name], d.String()
		}
	}
	merged := &v1alpha1.KwokDRAConfiguration{}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &merged.Spec)
	return merged, errors.Join(append(errs, err)...)
}

// newConfiguration fills in the defaults and compiles the selectors.
func newConfiguration(document *v1alpha1.KwokDRAConfiguration) (*Configuration, field.ErrorList) {
	defaulted := *document
	defaults.SetKwokDRAConfiguration(&defaulted)
	spec := &defaulted.Spec
	type compiler func(*kwokv1alpha1.StageSelector, *field.Path) (*lifecycle.Selector, field.ErrorList)
	var errs field.ErrorList
	compiled := func(name string, source *kwokv1alpha1.StageSelector, compile compiler) *lifecycle.Selector {
		if source == nil {
			return nil
		}
		selector, problems := compile(source, field.NewPath("spec", name))
		errs = append(errs, problems...)
		return selector
	}
	return &Configuration{
		publishWhen:   compiled("publishWhen", spec.PublishWhen, lifecycle.CompileForNode),
		retireWhen:    compiled("retireWhen", spec.RetireWhen, lifecycle.CompileForNode),
		PrepareWhen:   compiled("prepareWhen", spec.PrepareWhen, lifecycle.CompileForPod),
		FailWhen:      compiled("failWhen", spec.FailWhen, lifecycle.CompileForPod),
		UnprepareWhen: compiled("unprepareWhen", spec.UnprepareWhen, lifecycle.CompileForPod),
		Faithful:      spec.PodStatus == v1alpha1.PodStatusFaithful,
		RetryInterval: spec.RetryInterval.Duration,
		BindingDelay:  spec.BindingDelay.Duration,
		PluginsDir:    spec.PluginsDir,
		ContainerView: spec.ContainerView,
	}, errs
}

// isAs reports whether the set says what another one says.
func (s *Set) isAs(other *Set) bool {
	return other != nil && slices.Equal(s.documents, other.documents) && len(s.Unsettled) == len(other.Unsettled)
}

// everything is the empty selector, which always holds.
var everything, _ = lifecycle.CompileForNode(&kwokv1alpha1.StageSelector{}, field.NewPath("publishWhen"))

// Published is the set as if publishWhen held everywhere.
func (s *Set) Published() *Set {
	published := *s
	published.published = true
	return &published
}

// HasDriver reports whether any template is of the driver.
func (s *Set) HasDriver(driver string) bool {
	return slices.ContainsFunc(s.Templates, func(t *devices.Template) bool { return t.Driver == driver }) || s.named != nil && s.named(driver)
}

// withNamed is the set with the drivers that driver Pods name, if any template leaves
// that to them.
func (s *Set) withNamed(named func(driver string) bool) *Set {
	if s == nil || !slices.ContainsFunc(s.Templates, (*devices.Template).NamesDriver) {
		return s
	}
	with := *s
	with.named = named
	return &with
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

// PublishWhen says when the template's pool is first published.
func (s *Set) PublishWhen(t *devices.Template) *lifecycle.Selector {
	if s.published {
		return everything
	}
	return cmp.Or(t.PublishWhen, s.publishWhen)
}

// RetireWhen says when the template's pool is deleted. It is nil for never.
func (s *Set) RetireWhen(t *devices.Template) *lifecycle.Selector {
	return cmp.Or(t.RetireWhen, s.retireWhen)
}
