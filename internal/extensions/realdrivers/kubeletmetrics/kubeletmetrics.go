package kubeletmetrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// methodPrefix is what the gRPC method of drivers has before the name of a kubelet's operation, PrepareResources or
// UnprepareResources.
const methodPrefix = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/Node"

// anyDriver is the kubelet's driver_name for the count of all claims.
const anyDriver = "<any>"

// Metrics has the metrics. A nil Metrics records nothing.
type Metrics struct {
	// AllHaveTemplates, if set, reports whether a driver has templates and none can be real. Set it before anything is recorded.
	AllHaveTemplates func(driver string) bool

	operations, calls *prometheus.HistogramVec
	inUse             *prometheus.Desc
	// countInUse counts the claims in use, by driver and in total.
	countInUse func() (byDriver map[string]int, all int)
}

// New returns metrics that count no claims in use until CountInUse is called.
func New() *Metrics {
	buckets := prometheus.ExponentialBucketsRange(.1, 40, 15)
	return &Metrics{
		operations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "dra_operations_duration_seconds",
			Help:    "Time to prepare or unprepare all claims of a Pod, by operation_name (PrepareResources, UnprepareResources) and is_error (true, false): from when kwok-dra saw that it is due to the last write.",
			Buckets: buckets,
		}, []string{"operation_name", "is_error"}),
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "dra_grpc_operations_duration_seconds",
			Help:    "Time of calls of drivers, by driver, method and gRPC status code. For a driver with templates, which is not called, it is that of the operation.",
			Buckets: buckets,
		}, []string{"driver_name", "method_name", "grpc_status_code"}),
		inUse: prometheus.NewDesc("dra_resource_claims_in_use",
			"ResourceClaims that are prepared on fake nodes now, by driver; "+anyDriver+" counts each once.", []string{"driver_name"}, nil),
		countInUse: func() (map[string]int, int) { return nil, 0 },
	}
}

// CountInUse sets the function that counts the claims in use. Call it before the metrics are collected.
func (m *Metrics) CountInUse(inUse func() (byDriver map[string]int, all int)) {
	if m != nil {
		m.countInUse = inUse
	}
}

// recordOperation records an operation for a Pod.
func (m *Metrics) recordOperation(name string, took time.Duration, failed bool) {
	m.operations.WithLabelValues(name, strconv.FormatBool(failed)).Observe(took.Seconds())
}

// Call records a call of a driver.
func (m *Metrics) Call(driver, method, code string, took time.Duration) {
	if m != nil {
		m.calls.WithLabelValues(driver, method, code).Observe(took.Seconds())
	}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	m.operations.Describe(ch)
	m.calls.Describe(ch)
	ch <- m.inUse
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.operations.Collect(ch)
	m.calls.Collect(ch)
	byDriver, all := m.countInUse()
	for driver, count := range byDriver {
		ch <- prometheus.MustNewConstMetric(m.inUse, prometheus.GaugeValue, float64(count), driver)
	}
	ch <- prometheus.MustNewConstMetric(m.inUse, prometheus.GaugeValue, float64(all), anyDriver)
}
