package app

import (
	"context"
	"net/url"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clientmetrics "k8s.io/client-go/tools/metrics"
	"k8s.io/client-go/util/workqueue"
)

// clientMetrics returns collectors of client-go's own metrics, under the names
// that Kubernetes components give them. client-go takes its providers once per
// process, so the collectors are made once.
var clientMetrics = sync.OnceValue(func() []prometheus.Collector {
	requests := newRequestMetrics()
	clientmetrics.Register(clientmetrics.RegisterOpts{RequestLatency: requests, RequestResult: requests})
	queues := newQueueMetrics()
	workqueue.SetProvider(queues)
	return append(requests.collectors(), queues.collectors()...)
})

// requestMetrics counts and times requests to the API server.
type requestMetrics struct {
	total    *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func newRequestMetrics() *requestMetrics {
	return &requestMetrics{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rest_client_requests_total",
			Help: "Requests to the API server, by status code, method and host.",
		}, []string{"code", "method", "host"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "rest_client_request_duration_seconds",
			Help:    "Time that requests to the API server took, by verb.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
		}, []string{"verb"}),
	}
}

func (m *requestMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.total, m.duration}
}

// Increment implements client-go's ResultMetric.
func (m *requestMetrics) Increment(_ context.Context, code, method, host string) {
	m.total.WithLabelValues(code, method, host).Inc()
}

// Observe implements client-go's LatencyMetric.
func (m *requestMetrics) Observe(_ context.Context, verb string, _ url.URL, latency time.Duration) {
	m.duration.WithLabelValues(verb).Observe(latency.Seconds())
}

// queueMetrics implements workqueue.MetricsProvider.
type queueMetrics struct {
	depth, unfinished, longest *prometheus.GaugeVec
	adds, retries              *prometheus.CounterVec
	queued, worked             *prometheus.HistogramVec
}

func newQueueMetrics() *queueMetrics {
	labels := []string{"name"}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "workqueue", Name: name, Help: help}, labels)
	}
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "workqueue", Name: name, Help: help}, labels)
	}
	histogram := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "workqueue", Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(1e-6, 10, 9),
		}, labels)
	}
	return &queueMetrics{
		depth:      gauge("depth", "Keys in the queue."),
		unfinished: gauge("unfinished_work_seconds", "Seconds of work on keys that have not been finished."),
		longest:    gauge("longest_running_processor_seconds", "Seconds that the longest running key has taken."),
		adds:       counter("adds_total", "Keys added to the queue."),
		retries:    counter("retries_total", "Keys added again after a failure."),
		queued:     histogram("queue_duration_seconds", "Time that keys waited in the queue."),
		worked:     histogram("work_duration_seconds", "Time that keys took."),
	}
}

func (m *queueMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.depth, m.unfinished, m.longest, m.adds, m.retries, m.queued, m.worked}
}

func (m *queueMetrics) NewDepthMetric(name string) workqueue.GaugeMetric {
	return m.depth.WithLabelValues(name)
}

func (m *queueMetrics) NewAddsMetric(name string) workqueue.CounterMetric {
	return m.adds.WithLabelValues(name)
}

func (m *queueMetrics) NewLatencyMetric(name string) workqueue.HistogramMetric {
	return m.queued.WithLabelValues(name)
}

func (m *queueMetrics) NewWorkDurationMetric(name string) workqueue.HistogramMetric {
	return m.worked.WithLabelValues(name)
}

func (m *queueMetrics) NewUnfinishedWorkSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return m.unfinished.WithLabelValues(name)
}

func (m *queueMetrics) NewLongestRunningProcessorSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return m.longest.WithLabelValues(name)
}

func (m *queueMetrics) NewRetriesMetric(name string) workqueue.CounterMetric {
	return m.retries.WithLabelValues(name)
}
