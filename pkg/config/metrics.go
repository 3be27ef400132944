package config

import "github.com/prometheus/client_golang/prometheus"

var (
	refusedDesc    = prometheus.NewDesc("kwok_dra_config_refused_total", "Versions of the configuration that were refused because they are invalid, by carrier (files, a ConfigMap, custom resources).", []string{"carrier"}, nil)
	successfulDesc = prometheus.NewDesc("kwok_dra_config_last_reload_successful", "1 if the newest version of the configuration is in force, 0 if it was refused, by carrier.", []string{"carrier"}, nil)
)

// Describe implements prometheus.Collector.
func (s *Store) Describe(ch chan<- *prometheus.Desc) {
	ch <- refusedDesc
	ch <- successfulDesc
}

// Collect implements prometheus.Collector. Of a carrier that is not known there is
// nothing to tell.
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
