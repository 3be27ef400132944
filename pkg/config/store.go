package config

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Store knows the newest documents of all carriers, and keeps the set that is in
// force. The set is worked out anew from all of them on every change.
type Store struct {
	current atomic.Pointer[Set]
	metrics *metrics

	mu       sync.Mutex
	names    []string
	carriers map[string]*state
	// inForce are the versions that the set is made of.
	inForce  decided
	onChange []func()
}

// state is what is known of a carrier, one of the places that documents are from.
type state struct {
	// known tells that all its sources are.
	known bool
	// sources are in the order in which they win over each other.
	sources []*source
}

// NewStore makes a store for the named carriers, of which the first wins where two
// contradict each other. The set is there once all are known.
func NewStore(carriers ...string) *Store {
	return &Store{names: carriers, carriers: map[string]*state{}, metrics: newMetrics()}
}

// Current returns the set in force, or nil as long as a carrier is not known or
// has not had a good version. Nothing may be published or retired then: what the
// carrier would say of the slices that exist is not known.
func (s *Store) Current() *Set {
	return s.current.Load()
}

// has reports whether there is such a carrier.
func (s *Store) has(name string) bool {
	return slices.Contains(s.names, name)
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
	return s.take(name, version{newest: documents})
}

// version is what is known of a carrier that is one source.
type version struct {
	newest *Documents
	// broken is why there is no newest version.
	broken error
	// tell is told when the version is refused.
	tell func(error)
}

// take takes a version, and returns why it is not in force.
func (s *Store) take(name string, v version) error {
	if !s.has(name) {
		return fmt.Errorf("unknown carrier %q", name)
	}
	var one *source
	s.change(name, func(c *state) {
		if len(c.sources) == 0 {
			c.sources = []*source{{early: true}}
		}
		c.known, one = true, c.sources[0]
		one.newest, one.broken, one.tell = v.newest, v.broken, v.tell
		one.required, one.changed = true, true
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	return one.refused
}

// missing notes that a carrier that is one source does not exist. What it said last
// stays in force; whether anything is in force without that is for required to say.
func (s *Store) missing(name string, why error, required bool) {
	s.change(name, func(c *state) {
		if len(c.sources) == 0 {
			c.sources = []*source{{early: true}}
		}
		c.known = true
		one := c.sources[0]
		one.newest, one.broken, one.tell, one.required = nil, why, nil, required
	})
}

// change changes a carrier, and works out what is in force now.
func (s *Store) change(name string, f func(*state)) {
	s.mu.Lock()
	if s.carriers[name] == nil {
		s.carriers[name] = &state{}
	}
	f(s.carriers[name])
	var told []func()
	changed := false
	if s.carriers[name].known {
		told, changed = s.settle()
	}
	s.mu.Unlock()
	for _, tell := range told {
		tell()
	}
	if !changed {
		return
	}
	for _, f := range s.onChange {
		f()
	}
}

// settle works out what is in force. It returns what is to be told of sources, and
// whether there is a new set.
func (s *Store) settle() (told []func(), changed bool) {
	var all []*source
	known := true
	for _, name := range s.names {
		c := s.carriers[name]
		if c == nil || !c.known {
			known = false
			continue
		}
		all = append(all, c.sources...)
	}
	d := decide(all)
	for i, one := range all {
		chosen := d.chosen[i]
		if !known || d.waits { // it does not come into force, and another carrier may win
			chosen = nil
		}
		if one.settle(chosen, d.refused[i]) && one.tell != nil && one.refused != nil {
			told = append(told, func() { one.tell(d.refused[i]) })
		}
	}
	s.signal()
	if !known || d.waits || s.current.Load() != nil && s.inForce.equal(&d) {
		return told, false
	}
	s.current.Store(d.set)
	s.inForce = d.decided
	return told, true
}

// signal brings the metrics up to date.
func (s *Store) signal() {
	for _, name := range s.names {
		c := s.carriers[name]
		if c == nil || !c.known {
			continue
		}
		for _, one := range c.sources {
			if one.changed && one.refused != nil && one.newest != nil || one.changed && one.broken != nil {
				s.metrics.bad(name)
			}
			one.changed = false
		}
		s.metrics.set(name, !slices.ContainsFunc(c.sources, func(one *source) bool { return one.refused != nil }))
	}
}

// Describe and Collect make the store a Prometheus collector.
func (s *Store) Describe(ch chan<- *prometheus.Desc) { s.metrics.describe(ch) }

// Collect implements prometheus.Collector.
func (s *Store) Collect(ch chan<- prometheus.Metric) { s.metrics.collect(ch) }

type metrics struct {
	refused    *prometheus.CounterVec
	successful *prometheus.GaugeVec
}

func newMetrics() *metrics {
	return &metrics{
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kwok_dra_config_refused_total",
			Help: "Versions of the configuration that were refused because they are invalid, by carrier (files, a ConfigMap, custom resources).",
		}, []string{"carrier"}),
		successful: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kwok_dra_config_last_reload_successful",
			Help: "1 if the newest version of the configuration is in force, 0 if it was refused, by carrier.",
		}, []string{"carrier"}),
	}
}

// set sets whether all newest versions of a carrier are in force.
func (m *metrics) set(carrier string, successful bool) {
	m.refused.WithLabelValues(carrier)
	value := 0.0
	if successful {
		value = 1
	}
	m.successful.WithLabelValues(carrier).Set(value)
}

func (m *metrics) bad(carrier string) {
	m.refused.WithLabelValues(carrier).Inc()
}

func (m *metrics) describe(ch chan<- *prometheus.Desc) {
	m.refused.Describe(ch)
	m.successful.Describe(ch)
}

func (m *metrics) collect(ch chan<- prometheus.Metric) {
	m.refused.Collect(ch)
	m.successful.Collect(ch)
}
