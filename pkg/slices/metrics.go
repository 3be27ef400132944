package slices

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/cache"

	"github.com/kwok-dra/kwok-dra/pkg/loop"
)

// metrics are the metrics of publication. The gauges are read off the cache
// when they are asked for, so they cannot drift.
type metrics struct {
	cache   cache.Store
	writes  *prometheus.CounterVec
	latency prometheus.Histogram
	dropped *prometheus.GaugeVec
	failing *prometheus.CounterVec
	slices  *prometheus.Desc
	devices *prometheus.Desc
}

func newMetrics(cache cache.Store) *metrics {
	return &metrics{
		cache: cache,
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kwok_dra_slice_writes_total",
			Help: "Writes of ResourceSlices, by verb (create, update, delete) and result (ok or the API server's reason).",
		}, []string{"verb", "result"}),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "kwok_dra_publish_duration_seconds",
			Help:    "Time from the event of a Node to the API server's answer to the last write that it caused.",
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
		slices:  prometheus.NewDesc("kwok_dra_slices", "ResourceSlices that are published now, by driver.", []string{"driver"}, nil),
		devices: prometheus.NewDesc("kwok_dra_devices", "Devices that are published now, by driver.", []string{"driver"}, nil),
	}
}

func (m *metrics) wrote(verb string, err error) {
	m.writes.WithLabelValues(verb, loop.Result(err)).Inc()
}

func (m *metrics) published(since time.Time) {
	m.latency.Observe(time.Since(since).Seconds())
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	m.writes.Describe(ch)
	m.latency.Describe(ch)
	m.dropped.Describe(ch)
	m.failing.Describe(ch)
	ch <- m.slices
	ch <- m.devices
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	m.writes.Collect(ch)
	m.latency.Collect(ch)
	m.dropped.Collect(ch)
	m.failing.Collect(ch)
	slices, devices := map[string]int{}, map[string]int{}
	for _, object := range m.cache.List() {
		slice := object.(*Observed)
		slices[slice.Driver]++
		devices[slice.Driver] += slice.Devices
	}
	for driver, count := range slices {
		ch <- prometheus.MustNewConstMetric(m.slices, prometheus.GaugeValue, float64(count), driver)
		ch <- prometheus.MustNewConstMetric(m.devices, prometheus.GaugeValue, float64(devices[driver]), driver)
	}
}
