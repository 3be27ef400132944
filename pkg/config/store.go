package config

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Store knows the newest documents of all carriers, and keeps the set that is in
// force. The set is worked out anew from all of them on every change.
type Store struct {
	current atomic.Pointer[Set]

	mu sync.Mutex
	// carriers are in the order in which they win over each other.
	carriers []*carrier
	// inForce are the versions that the set is made of.
	inForce  decided
	onChange []func()
}

// NewStore makes a store for the named carriers, of which the first wins where two
// contradict each other. The set is there once all are known.
func NewStore(carriers ...string) *Store {
	s := &Store{}
	for _, name := range carriers {
		s.carriers = append(s.carriers, newCarrier(name))
	}
	return s
}

// Current returns the set in force, or nil as long as a carrier is not known or
// has not had a good version. Nothing may be published or retired then: what the
// carrier would say of the slices that exist is not known.
func (s *Store) Current() *Set {
	return s.current.Load()
}

// Synced are done when it is known what each carrier has.
func (s *Store) Synced() []cache.DoneChecker {
	all := make([]cache.DoneChecker, len(s.carriers))
	for i, c := range s.carriers {
		all[i] = c
	}
	return all
}

// OnChange has f called after each change of the set. Call it before the first
// Replace.
func (s *Store) OnChange(f func()) {
	s.onChange = append(s.onChange, f)
}

// Replace takes the new version of a carrier that is one source. Where it
// contradicts another carrier, the error says so, the last good version stays in
// force, and the new one comes into force once it can.
func (s *Store) Replace(name string, documents *Documents) error {
	c := s.carrier(name)
	if c == nil {
		return fmt.Errorf("unknown carrier %q", name)
	}
	s.sync(klog.Background(), c, func() []version {
		return []version{{id: documents, read: func() content { return content{newest: documents, required: true} }}}
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	return c.sources[key{}].refused
}

// carrier finds a carrier by its name, or nil.
func (s *Store) carrier(name string) *carrier {
	i := slices.IndexFunc(s.carriers, func(c *carrier) bool { return c.name == name })
	if i < 0 {
		return nil
	}
	return s.carriers[i]
}

// sync takes what a carrier has now, and works out what is in force. Nothing else is
// taken while it is listed, so what is taken last is the newest.
func (s *Store) sync(logger klog.Logger, c *carrier, list func() []version) {
	s.mu.Lock()
	c.logger = logger
	var told []func()
	changed := false
	if c.take(list()) {
		told, changed = s.settle()
	}
	s.mu.Unlock()
	for _, tell := range told {
		tell()
	}
	if changed {
		for _, f := range s.onChange {
			f()
		}
	}
	c.setKnown()
}

// settle works out what is in force. It returns what is to be told of sources, and
// whether there is a new set.
func (s *Store) settle() (told []func(), changed bool) {
	var all []*source
	known := true
	for _, c := range s.carriers {
		known = known && c.sources != nil
		all = append(all, c.ordered()...)
	}
	d := decide(all)
	inForce := known && !d.waits
	if !inForce {
		clear(d.chosen) // none comes into force, and another carrier may win
	}
	for _, c := range s.carriers {
		told = append(told, c.settle(&d)...)
	}
	if !inForce || s.current.Load() != nil && s.inForce.equal(&d.decided) {
		return told, false
	}
	s.current.Store(d.set)
	s.inForce = d.decided
	return told, true
}

// Acceptance reports whether the newest version of a custom resource is in force.
type Acceptance struct {
	// Generation is that of the newest version.
	Generation int64
	// Err is why it is not, or nil.
	Err error
	// Source is the newest version. It is not to be written to.
	Source *unstructured.Unstructured
	// Templates are the names of those of the version that is in force.
	Templates []string
}

// Acceptance is what became of each custom resource of a kind, by name.
func (s *Store) Acceptance(kind string) map[string]Acceptance {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]Acceptance{}
	for _, c := range s.carriers {
		for key, one := range c.sources {
			if source, ok := one.object.(*unstructured.Unstructured); ok && key.kind == kind {
				all[key.name] = Acceptance{source.GetGeneration(), one.refused, source, one.good.templateNames()}
			}
		}
	}
	return all
}
