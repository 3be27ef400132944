package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// carrier is where documents come from: the files, a ConfigMap, or the custom resources.
type carrier struct {
	name string
	// sources are the observed sources, the oldest first: the older of two that contradict each
	// other wins. They are nil until the carrier has been read.
	sources []*source
	// refusals counts the versions that were refused.
	refusals int
	// known is closed once the carrier has been read.
	known chan struct{}
	// recorder emits events on the objects of the sources. It is nil for files.
	recorder record.EventRecorder
}

// object has documents: a ConfigMap or a custom resource.
type object interface {
	metav1.Object
	runtime.Object
}

// source is the part of a carrier that is in force as a whole or not at all: all files, a
// ConfigMap, or one custom resource.
type source struct {
	// key has the kind, the name and the UID of a custom resource. It is empty for the other
	// carriers, which have one source.
	key string
	// version identifies the newest version. It is nil if the source does not exist.
	version any
	// object has the newest version. It is nil for files, and if the source does not exist.
	object object
	// decode sets newest or decodeErr, and required.
	decode func(*source)

	// newest is nil if the newest version is invalid by itself; decodeErr says why.
	newest    *Documents
	decodeErr error
	// required reports whether nothing may be in force while this source has no good version.
	required bool

	history
}

// history is what this process remembers of a source.
type history struct {
	// good is the version that was in force last, or nil.
	good *Documents
	// refused is why the newest version is not in force, or nil.
	refused error
	// presentAtStart reports whether an earlier process may have had the source in force: it
	// existed when this process began, and no version of it has been good since.
	presentAtStart bool
	// isUndecided reports whether recordDecision has not seen the newest version yet.
	isUndecided bool
}

// Name and Done implement cache.DoneChecker.
func (c *carrier) Name() string          { return c.name }
func (c *carrier) Done() <-chan struct{} { return c.known }

// observeSources replaces the sources by those that exist now, decodes new versions, and reports
// whether any source came, went or has a new version. A change of an object's status is not a
// new version.
func (c *carrier) observeSources(now []*source) (changed bool) {
	known := make(map[string]*source, len(c.sources))
	for _, s := range c.sources {
		known[s.key] = s
	}
	changed = c.sources == nil || len(now) != len(known)
	for i, s := range now {
		switch before := known[s.key]; {
		case before == nil:
			s.presentAtStart = c.sources == nil
		case before.version == s.version:
			before.object, now[i] = s.object, before
			continue
		default:
			s.history = before.history
		}
		if s.decode(s); s.decodeErr != nil {
			s.newest = nil
		}
		s.isUndecided, changed = s.version != nil, true
	}
	slices.SortFunc(now, func(a, b *source) int {
		one, other := a.object.GetCreationTimestamp(), b.object.GetCreationTimestamp()
		return cmp.Or(one.Compare(other.Time), cmp.Compare(a.key, b.key))
	})
	c.sources = append([]*source{}, now...) // never nil from now on
	return changed
}

// recordDecision records which version of a source is in force, or why the newest one is not,
// and reports what changed as log lines and events.
func (c *carrier) recordDecision(logger klog.Logger, s *source, chosen *Documents, refused error) {
	isNews := s.isUndecided || fmt.Sprint(s.refused) != fmt.Sprint(refused)
	if s.isUndecided && refused != nil {
		c.refusals++
	}
	before := s.good
	s.refused, s.isUndecided = refused, false
	if chosen != nil {
		s.good, s.presentAtStart = chosen, false
	}
	if c.recorder == nil {
		return
	}
	switch {
	case refused != nil && isNews:
		logger.Error(refused, "Refused the configuration; the last good version stays in force", "carrier", c.name, "object", klog.KObj(s.object))
		if s.object != nil {
			c.recorder.Event(s.object, corev1.EventTypeWarning, v1alpha1.ReasonInvalidConfiguration, v1alpha1.EventMessage(refused))
		}
	case s.good != before:
		logger.Info("Applied the configuration", "carrier", c.name, "object", klog.KObj(s.object), "templates", len(chosen.templates))
		if chosen.changes != "" && (before == nil || chosen.changes != before.changes) {
			c.recorder.Event(s.object, corev1.EventTypeWarning, v1alpha1.ReasonNormalized, chosen.changes)
		}
	}
}

// decision says which version of each source is in force.
type decision struct {
	set *Set
	// chosen has the version in force of each source that has one.
	chosen map[*source]*Documents
	// refused says why the newest version of a source is not in force.
	refused map[*source]error
	// pending is why nothing may be in force: a required source has no good version. It is nil
	// otherwise.
	pending error
}

// errNoVersion is why nothing is in force although no version was refused.
var errNoVersion = errors.New("not all of the configuration is there yet")

// decideVersions chooses the version of each source that is in force: the newest, or else the one that
// was good last. Where two sources contradict each other, the earlier one in the list wins. The
// decision depends on nothing but the sources.
func decideVersions(sources []*source) decision {
	d := decision{chosen: map[*source]*Documents{}, refused: map[*source]error{}}
	var all []*Documents
	for _, s := range sources {
		d.refused[s] = s.decodeErr
		if version := cmp.Or(s.newest, s.good); version != nil {
			d.chosen[s] = version
			all = append(all, version)
		}
	}
	var err error
	if d.set, err = NewSet(all...); err != nil {
		d.resolveContradictions(sources)
	}
	for _, s := range sources {
		if d.chosen[s] != nil || !s.presentAtStart {
			continue
		}
		if s.required {
			d.pending = cmp.Or(d.pending, d.refused[s], errNoVersion)
		}
		if d.refused[s] != nil {
			d.set.Unsettled = append(d.set.Unsettled, d.refused[s])
		}
	}
	return d
}

// resolveContradictions chooses for each source the version that does not contradict the
// sources before it.
func (d *decision) resolveContradictions(sources []*source) {
	var all []*Documents
	d.set, _ = NewSet()
	clear(d.chosen)
	for _, s := range sources {
		for _, version := range []*Documents{s.newest, s.good} {
			if version == nil {
				continue
			}
			set, err := NewSet(append(slices.Clip(all), version)...)
			if err == nil {
				d.set, d.chosen[s], all = set, version, append(all, version)
				break
			}
			if version == s.newest {
				d.refused[s] = err
			}
		}
	}
}

// Snapshot returns the set that a sidecar that starts now would have in force, given a ConfigMap
// or nil and the custom resources, and why documents are refused.
func Snapshot(configMap *corev1.ConfigMap, objects []*unstructured.Unstructured) (set *Set, refused []error) {
	own := carrier{sources: []*source{}} // so the ConfigMap is new: nothing of a refused one can be in force yet
	if configMap != nil {
		own.observeSources([]*source{(&ConfigMap{}).sourceOf(configMap)})
	}
	var custom carrier
	custom.observeSources(sourcesOfObjects(objects))
	sources := slices.Concat(own.sources, custom.sources)
	d := decideVersions(sources)
	for _, s := range sources {
		if err := d.refused[s]; err != nil {
			refused = append(refused, err)
		}
	}
	return d.set, refused
}
