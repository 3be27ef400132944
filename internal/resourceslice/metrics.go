package resourceslice

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kwok-dra/kwok-dra/internal/observe"
)

// metrics are the metrics of publication.
type metrics struct {
	// all is the collector of the others.
	all *prometheus.Registry

	writes  *prometheus.CounterVec
	latency prometheus.Histogram
	dropped *prometheus.GaugeVec
	failing *prometheus.CounterVec
}

func newMetrics(published *observe.Slices) *metrics {
	m := &metrics{
		all: prometheus.NewRegistry(),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kwok_dra_slice_writes_total",
			Help: "Writes of ResourceSlices, by verb (create, update, delete) and result (ok or the API server's reason).",
		}, []string{"verb", "result"}),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "kwok_dra_publish_duration_seconds",
			Help:    "Time from the event of a Node, or of a driver Pod on it, to the API server's answer to the last write that it caused.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
		}),
		dropped: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kwok_dra_dropped_fields",
			Help: "1 for each template and device field that the API server drops because a feature gate is off. For taints of the annotation of a Node, template is the name of the annotation.",
		}, []string{"template", "field"}),
		failing: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kwok_dra_publish_failures_total",
			Help: "Failures to bring a Node to the desired state, by cause (template, annotation, api). Each retry counts.",
		}, []string{"cause"}),
	}
	m.all.MustRegister(m.writes, m.latency, m.dropped, m.failing, &gauges{
		published: published,
		slices:    prometheus.NewDesc("kwok_dra_slices", "ResourceSlices that are published now, by driver.", []string{"driver"}, nil),
		devices:   prometheus.NewDesc("kwok_dra_devices", "Devices that are published now, by driver.", []string{"driver"}, nil),
	})
	return m
}

// gauges are counted in the cache when Prometheus scrapes them, so they cannot drift.
type gauges struct {
	published       *observe.Slices
	slices, devices *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(ch chan<- *prometheus.Desc) {
	ch <- g.slices
	ch <- g.devices
}

// Collect implements prometheus.Collector.
func (g *gauges) Collect(ch chan<- prometheus.Metric) {
	slices, devices := map[string]int{}, map[string]int{}
	for slice := range g.published.All() {
		slices[slice.Driver]++
		devices[slice.Driver] += len(slice.Devices.List())
	}
	for driver, count := range slices {
		ch <- prometheus.MustNewConstMetric(g.slices, prometheus.GaugeValue, float64(count), driver)
		ch <- prometheus.MustNewConstMetric(g.devices, prometheus.GaugeValue, float64(devices[driver]), driver)
	}
}
