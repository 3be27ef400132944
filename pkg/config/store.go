package config

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Store keeps the last good version of each carrier and the set that they make.
type Store struct {
	current atomic.Pointer[Set]
	metrics *metrics

	mu       sync.Mutex
	names    []string
	carriers map[string]*Documents
	onChange []func()
}

// NewStore makes a store for the named carriers. The set is there once each of
// them has had a good version.
func NewStore(carriers ...string) *Store {
	return &Store{names: carriers, carriers: map[string]*Documents{}, metrics: newMetrics()}
}

// Current returns the set in force, or nil as long as a carrier has not had a
// good version. Nothing may be published or retired then: what the carrier
// would say of the slices that exist is not known.
func (s *Store) Current() *Set {
	return s.current.Load()
}

// has tells whether there is such a carrier.
func (s *Store) has(carrier string) bool {
	return slices.Contains(s.names, carrier)
}

// OnChange has f called after each change of the set. Call it before the first
// Replace.
func (s *Store) OnChange(f func()) {
	s.onChange = append(s.onChange, f)
}

// Replace takes a carrier's new version. Where the version contradicts another
// carrier, it is refused and the last good version stays in force.
func (s *Store) Replace(carrier string, documents *Documents) error {
	if err := s.replace(carrier, documents); err != nil {
		return err
	}
	s.metrics.good(carrier)
	for _, f := range s.onChange {
		f()
	}
	return nil
}

func (s *Store) replace(carrier string, documents *Documents) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*Documents
	complete := true
	for _, name := range s.names {
		version := s.carriers[name]
		if name == carrier {
			version = documents
		}
		if version == nil {
			complete = false
			continue
		}
		all = append(all, version)
	}
	if !s.has(carrier) {
		return fmt.Errorf("unknown carrier %q", carrier)
	}
	set, err := NewSet(all...)
	if err != nil {
		return err
	}
	s.carriers[carrier] = documents
	if complete {
		s.current.Store(set)
	}
	return nil
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

func (m *metrics) good(carrier string) {
	m.refused.WithLabelValues(carrier)
	m.successful.WithLabelValues(carrier).Set(1)
}

func (m *metrics) missing(carrier string) {
	m.refused.WithLabelValues(carrier)
	m.successful.WithLabelValues(carrier).Set(0)
}

func (m *metrics) bad(carrier string) {
	m.refused.WithLabelValues(carrier).Inc()
	m.successful.WithLabelValues(carrier).Set(0)
}

func (m *metrics) describe(ch chan<- *prometheus.Desc) {
	m.refused.Describe(ch)
	m.successful.Describe(ch)
}

func (m *metrics) collect(ch chan<- prometheus.Metric) {
	m.refused.Collect(ch)
	m.successful.Collect(ch)
}
