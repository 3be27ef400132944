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

	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/api/defaults"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// Set is the configuration in force. It does not change; a new version is a new Set.
type Set struct {
	Templates []*devices.Template
	// Classes are the DeviceClasses that documents in other programs' formats need.
	Classes []Class
	*Configuration
	// Unsettled are the errors of documents without a good version that an earlier process may
	// have had in force. Whatever they may have made stays as it is.
	Unsettled []error

	documents []*Documents
	shared    []*devices.Template
	total     devices.Total
	// publishesAlways has PublishWhen match every object.
	publishesAlways bool
	// isNamedByPod reports whether a driver Pod gives a driver this name. It is nil if no
	// extension knows driver Pods.
	isNamedByPod func(driver string) bool
}

// Class is a DeviceClass that must exist.
type Class struct {
	resourcev1.DeviceClass
	// For refers to the object that needs the class. Problems become events on it.
	For *corev1.ObjectReference
}

// Configuration merges all KwokDRAConfigurations, with defaults and compiled selectors.
type Configuration struct {
	PrepareWhen, FailWhen, UnprepareWhen *lifecycle.Selector
	// Faithful reports whether the sidecar writes all of a kubelet's Pod status.
	Faithful bool
	// RetryInterval is the least time that a Pod waits after a failure.
	RetryInterval time.Duration
	// BindingDelay is the time from a claim's allocation to its binding conditions.
	BindingDelay time.Duration
	// PluginsDir has a folder per node with the plugins of real drivers. It is empty without them.
	PluginsDir string
	// ContainerView is a folder that is shared with kwok. It is empty without the container view.
	ContainerView string

	publishWhen, retireWhen *lifecycle.Selector
}

// NewSet puts the documents of all sources together. The error names both sources where two
// templates have the same name or the same shared pool, or two configurations set the same field.
// It also refuses templates that together make too much.
func NewSet(sources ...*Documents) (*Set, error) {
	set := &Set{documents: sources}
	var errs []error
	byName := map[string]located[*devices.Template]{}
	var configurations []located[*v1alpha1.KwokDRAConfiguration]
	for _, documents := range sources {
		for _, t := range documents.templates {
			if other, isTaken := byName[t.value.Name]; isTaken {
				errs = append(errs, t.refuseField("metadata.name", "also in %s: rename one", other))
			}
			byName[t.value.Name] = t
			set.Templates = append(set.Templates, t.value)
			set.total.Add(t.value)
			excess, pool := set.total.Excess(), t.value.SharedPool()
			switch other := set.SharedPool(t.value.Driver, pool); {
			case excess != "":
				errs = append(errs, t.refuseField("spec.devices", "Forbidden: %s", excess))
			case other != nil:
				errs = append(errs, t.refuseField("spec.poolName", "template %s makes the pool %s of driver %s already: give another name", other.Name, pool, t.value.Driver))
			case pool != "":
				set.shared = append(set.shared, t.value)
			}
		}
		configurations = append(configurations, documents.configurations...)
		set.Classes = append(set.Classes, documents.classes...)
	}
	merged, setBy := map[string]any{}, map[string]location{}
	for _, d := range configurations {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&d.value.Spec)
		errs = append(errs, err)
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if other, isSet := setBy[name]; isSet {
				errs = append(errs, d.refuseField("spec."+name, "also set in %s: remove one", other))
			}
			merged[name], setBy[name] = fields[name], d.location
		}
	}
	configuration := &v1alpha1.KwokDRAConfiguration{}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(merged, &configuration.Spec)
	compiled, invalid := newConfiguration(configuration)
	set.Configuration = compiled
	return set, errors.Join(append(errs, err, invalid.ToAggregate())...)
}

func newConfiguration(document *v1alpha1.KwokDRAConfiguration) (*Configuration, field.ErrorList) {
	defaulted := *document
	defaults.SetKwokDRAConfiguration(&defaulted)
	spec := &defaulted.Spec
	var errs field.ErrorList
	compiled := func(name string, source *kwokv1alpha1.StageSelector, kind *lifecycle.Environment) *lifecycle.Selector {
		if source == nil {
			return nil
		}
		selector, problems := kind.CompileSelector(source, field.NewPath("spec", name))
		errs = append(errs, problems...)
		return selector
	}
	return &Configuration{
		publishWhen:   compiled("publishWhen", spec.PublishWhen, lifecycle.NodeCEL),
		retireWhen:    compiled("retireWhen", spec.RetireWhen, lifecycle.NodeCEL),
		PrepareWhen:   compiled("prepareWhen", spec.PrepareWhen, lifecycle.PodCEL),
		FailWhen:      compiled("failWhen", spec.FailWhen, lifecycle.PodCEL),
		UnprepareWhen: compiled("unprepareWhen", spec.UnprepareWhen, lifecycle.PodCEL),
		Faithful:      spec.PodStatus == v1alpha1.PodStatusFaithful,
		RetryInterval: spec.RetryInterval.Duration,
		BindingDelay:  spec.BindingDelay.Duration,
		PluginsDir:    spec.PluginsDir,
		ContainerView: spec.ContainerView,
	}, errs
}

// everything is the empty selector, which matches every object.
var everything, _ = lifecycle.NodeCEL.CompileSelector(&kwokv1alpha1.StageSelector{}, field.NewPath("publishWhen"))

// Published returns a copy of the set whose PublishWhen matches every object.
func (s *Set) Published() *Set {
	set := *s
	set.publishesAlways = true
	return &set
}

// HasDriver reports whether any template is of the driver, or may be: a driver Pod has its name.
func (s *Set) HasDriver(driver string) bool {
	if slices.ContainsFunc(s.Templates, func(t *devices.Template) bool { return t.Driver == driver }) {
		return true
	}
	return s.isNamedByPod != nil && slices.ContainsFunc(s.Templates, (*devices.Template).NamesDriver) && s.isNamedByPod(driver)
}

// Shared returns the templates whose pools nodes share.
func (s *Set) Shared() []*devices.Template {
	return s.shared
}

// SharedPool finds the template of a pool that nodes share, or returns nil.
func (s *Set) SharedPool(driver, pool string) *devices.Template {
	i := slices.IndexFunc(s.shared, func(t *devices.Template) bool { return t.Driver == driver && t.SharedPool() == pool })
	if i < 0 {
		return nil
	}
	return s.shared[i]
}

// PublishWhen selects the nodes on which the template's pool is first published.
func (s *Set) PublishWhen(t *devices.Template) *lifecycle.Selector {
	if s.publishesAlways {
		return everything
	}
	return cmp.Or(t.PublishWhen, s.publishWhen)
}

// RetireWhen selects the nodes on which the template's pool is deleted. It is nil for none.
func (s *Set) RetireWhen(t *devices.Template) *lifecycle.Selector {
	return cmp.Or(t.RetireWhen, s.retireWhen)
}
