package config

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Store has the newest versions of all carriers, and the Set in force, which it makes anew from
// all of them on every change.
type Store struct {
	current atomic.Pointer[Set]

	mu sync.Mutex
	// carriers win over the later ones in the list.
	carriers []*carrier
	onChange []func()
	// pending is why nothing is in force although all carriers have been read, or nil.
	pending error
	// isNamedByPod reports whether a driver Pod gives the driver this name. It is nil if no
	// extension knows driver Pods.
	isNamedByPod func(driver string) bool
}

// NewStore makes a Store for the named carriers. If two contradict each other, the first wins.
// No Set is in force until all carriers have been read.
func NewStore(carriers ...string) *Store {
	s := &Store{}
	for _, name := range carriers {
		s.carriers = append(s.carriers, &carrier{name: name, known: make(chan struct{})})
	}
	return s
}

// Current returns the Set in force. It is nil until all carriers have been read, and while a
// required source has had no good version. Publish and retire nothing then: what the source
// would say of existing slices is not known.
func (s *Store) Current() *Set {
	return s.current.Load()
}

// Pending is why nothing is in force although all carriers have been read, or nil.
func (s *Store) Pending() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current.Load() != nil {
		return nil
	}
	return s.pending
}

// Synced are done when each carrier has been read.
func (s *Store) Synced() []cache.DoneChecker {
	all := make([]cache.DoneChecker, len(s.carriers))
	for i, c := range s.carriers {
		all[i] = c
	}
	return all
}

// OnChange has f called after each change of the Set. Call it before the first Replace.
func (s *Store) OnChange(f func()) {
	s.onChange = append(s.onChange, f)
}

// NameDrivers says which names driver Pods give drivers. Call it before anything uses the Set.
func (s *Store) NameDrivers(isNamedByPod func(driver string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isNamedByPod = isNamedByPod
	if current := s.current.Load(); current != nil {
		set := *current
		set.isNamedByPod = isNamedByPod
		s.current.Store(&set)
	}
}

// Replace hands over the new version of a carrier with one source. If it contradicts another
// carrier, the error says so, the last good version stays in force, and the new one comes into
// force as soon as it can.
func (s *Store) Replace(name string, documents *Documents) error {
	c := s.carrierNamed(name)
	if c == nil {
		return fmt.Errorf("unknown carrier %q", name)
	}
	s.syncCarrier(klog.Background(), c, func() []*source {
		return []*source{{version: documents, decode: func(s *source) { s.newest, s.required = documents, true }}}
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	return c.sources[0].refused
}

func (s *Store) carrierNamed(name string) *carrier {
	i := slices.IndexFunc(s.carriers, func(c *carrier) bool { return c.name == name })
	if i < 0 {
		return nil
	}
	return s.carriers[i]
}

// syncCarrier observes the sources that a carrier has now, decides what is in force, and calls
// onChange if that is a new Set. It calls list under the lock, so that the sources observed last
// are the newest.
func (s *Store) syncCarrier(logger klog.Logger, observed *carrier, list func() []*source) {
	s.mu.Lock()
	before, isFirst := s.current.Load(), observed.sources == nil
	if observed.observeSources(list()) {
		var sources []*source
		hasAllCarriers := true
		for _, c := range s.carriers {
			hasAllCarriers = hasAllCarriers && c.sources != nil
			sources = append(sources, c.sources...)
		}
		d := decideVersions(sources)
		s.pending = nil
		switch {
		case !hasAllCarriers:
			clear(d.chosen) // nothing comes into force, so another carrier may still win
		case d.pending != nil:
			s.pending = d.pending
			clear(d.chosen)
		case before == nil || !slices.Equal(d.set.documents, before.documents) || len(d.set.Unsettled) != len(before.Unsettled):
			d.set.isNamedByPod = s.isNamedByPod
			s.current.Store(d.set)
		}
		for _, c := range s.carriers {
			for _, one := range c.sources {
				c.recordDecision(logger, one, d.chosen[one], d.refused[one])
			}
		}
	}
	hasNewSet := s.current.Load() != before
	s.mu.Unlock()
	if hasNewSet {
		for _, f := range s.onChange {
			f()
		}
	}
	if isFirst {
		close(observed.known)
	}
}

// Acceptance says whether the newest version of a custom resource is in force.
type Acceptance struct {
	// Generation is that of the newest version.
	Generation int64
	// Err is why it is refused, or nil.
	Err error
	// Pending is why nothing is in force yet, or nil. What the object shows of its newest
	// version may be right then: another replica has it in force, or had before a restart.
	Pending error
	// Source is the newest version. It is shared, so do not modify it.
	Source *unstructured.Unstructured
	// Templates names the templates of the version in force.
	Templates []string
}

// Acceptance returns what became of each custom resource of a kind, by name. It is nil until all
// carriers have been read.
func (s *Store) Acceptance(kind string) map[string]Acceptance {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current.Load() == nil && s.pending == nil {
		return nil
	}
	all := map[string]Acceptance{}
	for _, c := range s.carriers {
		for _, one := range c.sources {
			object, ok := one.object.(*unstructured.Unstructured)
			if !ok || object.GetKind() != kind {
				continue
			}
			var templates []string
			for _, t := range cmp.Or(one.good, &Documents{}).templates {
				templates = append(templates, t.value.Name)
			}
			all[object.GetName()] = Acceptance{object.GetGeneration(), one.refused, s.pending, object, templates}
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

// Collect implements prometheus.Collector. It leaves out carriers that have not been read.
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
