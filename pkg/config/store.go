// Package config reads the configuration kinds of kwok-dra from their carriers
// and keeps one validated set of them.
//
// Decoding is strict and a carrier is taken whole or not at all: where one of
// its documents is invalid, its last good version stays in force.
package config

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
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
	onChange []func()
	// waits is why nothing is in force although all carriers are known, or nil.
	waits error
	// named reports whether driver Pods say that a driver is called that, if it is there.
	named func(driver string) bool
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

// Pending is why nothing is in force although all carriers are known, or nil.
func (s *Store) Pending() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current.Load() != nil {
		return nil
	}
	return s.waits
}

// Synced are done when it is known what each carrier has.
func (s *Store) Synced() []cache.DoneChecker {
	all := make([]cache.DoneChecker, len(s.carriers))
	for i, c := range s.carriers {
		all[i] = c
	}
	return all
}

// OnChange has f called after each change of the set. Call it before the first Replace.
func (s *Store) OnChange(f func()) {
	s.onChange = append(s.onChange, f)
}

// NameDrivers says which drivers driver Pods name. Call it before anything uses the set.
func (s *Store) NameDrivers(named func(driver string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.named = named
	s.current.Store(s.current.Load().withNamed(named))
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
	changed := c.take(list()) && s.settle()
	s.mu.Unlock()
	if changed {
		for _, f := range s.onChange {
			f()
		}
	}
	c.setKnown()
}

// settle works out what is in force, and reports whether there is a new set.
func (s *Store) settle() (changed bool) {
	var all []*source
	known := true
	for _, c := range s.carriers {
		known = known && c.sources != nil
		all = append(all, c.ordered()...)
	}
	d := decide(all)
	if s.waits = d.waits; !known {
		s.waits = nil
	}
	switch {
	case !known || d.waits != nil:
		clear(d.chosen) // none comes into force, and another carrier may win
	case !d.set.isAs(s.current.Load()):
		s.current.Store(d.set.withNamed(s.named))
		changed = true
	}
	for _, c := range s.carriers {
		for _, one := range c.ordered() {
			c.settle(one, d.chosen[one], d.refused[one])
		}
	}
	return changed
}

// Acceptance reports whether the newest version of a custom resource is in force.
type Acceptance struct {
	// Generation is that of the newest version.
	Generation int64
	// Err is what is wrong with it, or nil.
	Err error
	// Pending is why nothing is in force yet, or nil. What the object shows of its newest
	// version may be right then: another replica has it in force, or had before a restart.
	Pending error
	// Source is the newest version. It is not to be written to.
	Source *unstructured.Unstructured
	// Templates are the names of those of the version that is in force.
	Templates []string
}

// Acceptance is what became of each custom resource of a kind, by name. It is nil until all
// carriers are known.
func (s *Store) Acceptance(kind string) map[string]Acceptance {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current.Load() == nil && s.waits == nil {
		return nil
	}
	all := map[string]Acceptance{}
	for _, c := range s.carriers {
		for key, one := range c.sources {
			if source, ok := one.object.(*unstructured.Unstructured); ok && key.kind == kind {
				all[key.name] = Acceptance{source.GetGeneration(), one.refused, s.waits, source, one.good.templateNames()}
			}
		}
	}
	return all
}

var (
	refusedDesc    = prometheus.NewDesc("kwok_dra_config_refused_total", "Versions of the configuration that were refused because they are invalid, by carrier (files, a ConfigMap, custom resources).", []string{"carrier"}, nil)
	successfulDesc = prometheus.NewDesc("kwok_dra_config_last_reload_successful", "1 if the newest version of the configuration is in force, 0 if it was refused, by carrier.", []string{"carrier"}, nil)
)

// Describe implements prometheus.Collector.
func (s *Store) Describe(ch chan<- *prometheus.Desc) {
	ch <- refusedDesc
	ch <- successfulDesc
}

// Collect implements prometheus.Collector. It tells of carriers that are known.
func (s *Store) Collect(ch chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.carriers {
		if c.sources == nil {
			continue
		}
		successful := 1.0
		for _, one := range c.sources {
			if one.refused != nil {
				successful = 0
			}
		}
		ch <- prometheus.MustNewConstMetric(refusedDesc, prometheus.CounterValue, float64(c.refusals), c.name)
		ch <- prometheus.MustNewConstMetric(successfulDesc, prometheus.GaugeValue, successful, c.name)
	}
}
