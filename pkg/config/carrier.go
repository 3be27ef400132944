package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// carrier is one of the places that documents are from. It has sources, each of
// which stands or falls as a whole: all files, a ConfigMap, or custom resources.
type carrier struct {
	name string
	// sources are those that there are, or nil as long as that is not known.
	sources map[key]*source
	// refusals counts the versions that were refused.
	refusals int
	// known is closed by setKnown once it is known which sources there are.
	known    chan struct{}
	setKnown func()
	logger   klog.Logger
	// recorder writes events on the sources' objects. It is nil where they have none.
	recorder record.EventRecorder
}

// key tells the sources of a carrier apart. One that is one source has none.
type key struct {
	kind, name string
	uid        types.UID
}

// object is one that has documents: a ConfigMap, or a custom resource.
type object interface {
	metav1.Object
	runtime.Object
}

// version is a version of a source.
type version struct {
	key key
	// id tells the versions of a source apart. It is nil where the source is missing.
	id any
	// object has the version, or is nil where it is in none.
	object object
	// read decodes the version.
	read func() content
}

// content is what a version says.
type content struct {
	// newest is nil where the version does not stand by itself, and broken says why.
	newest *Documents
	broken error
	// required tells that nothing is in force without the source: it says when, or all.
	required bool
}

// source is what is known of a source.
type source struct {
	version
	content
	// good is the version that was in force last, or nil.
	good *Documents
	// refused is why the newest version is not in force, or nil.
	refused error
	// early tells that the source may have been in force before the process began: it
	// was there at the start, and no version of it has been good since.
	early bool
	// changed tells that the newest version has not been settled yet.
	changed bool
}

func newCarrier(name string) *carrier {
	known := make(chan struct{})
	return &carrier{name: name, known: known, setKnown: sync.OnceFunc(func() { close(known) })}
}

// Name and Done implement cache.DoneChecker.
func (c *carrier) Name() string          { return c.name }
func (c *carrier) Done() <-chan struct{} { return c.known }

// take takes all versions that there are now, and reports whether any is new.
func (c *carrier) take(versions []version) bool {
	before := c.sources
	c.sources = make(map[key]*source, len(versions))
	changed := before == nil || len(versions) != len(before)
	for _, v := range versions {
		one, had := before[v.key]
		if !had {
			one = &source{early: before == nil}
		}
		changed = one.take(v) || changed
		c.sources[v.key] = one
	}
	return changed
}

// take takes the newest version, and reports whether it is another one. What differs
// in the status of an object only is not.
func (s *source) take(v version) bool {
	same := s.read != nil && s.id == v.id
	s.version = v
	if same {
		return false
	}
	s.content = v.read()
	if s.broken != nil {
		s.newest = nil
	}
	s.changed = v.id != nil
	return true
}

// ordered are the sources by age: the older of two that contradict each other wins.
func (c *carrier) ordered() []*source {
	return slices.SortedFunc(maps.Values(c.sources), func(a, b *source) int {
		one, other := a.object.GetCreationTimestamp(), b.object.GetCreationTimestamp()
		return cmp.Or(one.Compare(other.Time), cmp.Compare(a.key.kind, b.key.kind), cmp.Compare(a.key.name, b.key.name))
	})
}

// settle notes what has been decided of a source, and tells it where it is news.
func (c *carrier) settle(one *source, chosen *Documents, refused error) {
	isNews := one.changed || fmt.Sprint(one.refused) != fmt.Sprint(refused)
	if one.changed && refused != nil {
		c.refusals++
	}
	before := one.good
	one.refused, one.changed = refused, false
	if chosen != nil {
		one.good, one.early = chosen, false
	}
	switch {
	case c.recorder == nil:
	case refused != nil && isNews:
		c.tellRefused(one.object, refused)
	case one.good != before:
		c.tellTaken(one.object, chosen, before)
	}
}

// tellRefused tells that a version is not in force.
func (c *carrier) tellRefused(object object, err error) {
	c.logger.Error(err, "Cannot take the configuration, the last good one stays in force", "carrier", c.name, "object", klog.KObj(object))
	if object != nil {
		c.recorder.Event(object, corev1.EventTypeWarning, v1alpha1.ReasonInvalidConfiguration, v1alpha1.EventMessage(err))
	}
}

// tellTaken tells that a version has come into force, and what is not taken as it is
// written, unless that was told of the version before.
func (c *carrier) tellTaken(object object, documents, before *Documents) {
	c.logger.Info("Took the configuration", "carrier", c.name, "object", klog.KObj(object), "templates", len(documents.templates))
	if changes := documents.changes; changes != "" && (before == nil || changes != before.changes) {
		c.recorder.Event(object, corev1.EventTypeWarning, v1alpha1.ReasonNormalized, changes)
	}
}
