package claims

import (
	"github.com/prometheus/client_golang/prometheus"
)

// metrics has the metrics of preparing.
type metrics struct {
	all *prometheus.Registry

	prepares, unprepares prometheus.Counter
	failures             *prometheus.CounterVec
	latency              prometheus.Histogram
	claimWrites          *prometheus.CounterVec
	podWrites            *prometheus.CounterVec
}

func newMetrics(inUse func() (byDriver map[string]int, all int), waiting func() map[string]int) *metrics {
	m := &metrics{
		all: prometheus.NewRegistry(),
		prepares: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kwok_dra_claim_prepares_total",
			Help: "ResourceClaims that were prepared. One that Pods share counts once. A restart counts those in use again.",
		}),
		unprepares: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kwok_dra_claim_unprepares_total",
			Help: "ResourceClaims that were unprepared because their last Pod ended.",
		}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kwok_dra_prepare_failures_total",
			Help: "Failed attempts to prepare the claims of a Pod, by reason.",
		}, []string{"reason"}),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "kwok_dra_prepare_duration_seconds",
			Help:    "Time from the event of a Pod's binding to the API server's answer to PodReadyToStartContainers=True.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 18),
		}),
		claimWrites: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kwok_dra_claim_writes_total",
			Help: "Writes of ResourceClaims, by operation (prepare, withdraw, bind) and result (ok or the API server's reason).",
		}, []string{"operation", "result"}),
		podWrites: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kwok_dra_pod_writes_total",
			Help: "Writes of Pods, by operation (waiting, ready, unprepared, health) and result (ok or the API server's reason).",
		}, []string{"operation", "result"}),
	}
	waitingDesc := prometheus.NewDesc("kwok_dra_waiting_pods",
		"Pods on fake nodes whose claims are not prepared yet, by the reason of the last failure, or preparing where nothing has failed.", []string{"reason"}, nil)
	waitingPods := prometheus.CollectorFunc(func(metrics chan<- prometheus.Metric) { // counts at each scrape
		for reason, count := range waiting() {
			metrics <- prometheus.MustNewConstMetric(waitingDesc, prometheus.GaugeValue, float64(count), reason)
		}
	})
	prepared := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kwok_dra_prepared_claims",
		Help: "ResourceClaims that are prepared for a Pod now.",
	}, func() float64 {
		_, all := inUse()
		return float64(all)
	})
	m.all.MustRegister(m.prepares, m.unprepares, m.failures, m.latency, m.claimWrites, m.podWrites, prepared, waitingPods)
	return m
}
