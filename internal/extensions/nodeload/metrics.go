package nodeload

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/klog/v2"
)

const (
	// tolerableLag is how late a request may be before the load is no longer that of real nodes.
	tolerableLag = time.Second
	// logInterval is how often a failure of one kind, and lag, is logged.
	logInterval = time.Minute
)

// Metrics say what was sent, and whether it was sent in time.
type Metrics struct {
	requests *prometheus.CounterVec
	watches  *prometheus.GaugeVec
	late     *prometheus.CounterVec
	lag      *prometheus.GaugeVec

	mu sync.Mutex
	// lags has the greatest lag of a component in this minute and in the one before.
	lags map[string]*lagWindow
	// logged has the time at which each kind of failure was last logged.
	logged map[string]time.Time
}

type lagWindow struct {
	began             time.Time
	current, previous time.Duration
}

// NewMetrics makes the metrics of a Controller. They are empty before it sends.
func NewMetrics() *Metrics {
	return &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kwok_dra_node_load_requests_total",
			Help: "Requests sent for the kubelets and drivers of fake nodes, by component (kubelet or driver), verb, resource and status code, or error if there was no answer. Only with --node-load.",
		}, []string{"component", "verb", "resource", "code"}),
		watches: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kwok_dra_node_load_watches",
			Help: "Open watches of the kubelets and drivers of fake nodes, by component (kubelet or driver) and resource. Only with --node-load.",
		}, []string{"component", "resource"}),
		late: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kwok_dra_node_load_late_requests_total",
			Help: "Requests that were sent more than a second later than a kubelet or driver would have, by component. If it rises, kwok-dra has too little CPU for the load, and what is measured of the API server is not the load of real nodes. Only with --node-load.",
		}, []string{"component"}),
		lag: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kwok_dra_node_load_lag_seconds",
			Help: "The longest time of the last one to two minutes by which a request was sent later than a kubelet or driver would have, by component. Only with --node-load.",
		}, []string{"component"}),
		lags: map[string]*lagWindow{}, logged: map[string]time.Time{},
	}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(out chan<- *prometheus.Desc) {
	for _, collector := range m.all() {
		collector.Describe(out)
	}
}

// Collect implements prometheus.Collector. There is nothing before the first request.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	for _, collector := range m.all() {
		collector.Collect(out)
	}
}

func (m *Metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.requests, m.watches, m.late, m.lag}
}

// count counts a request, and logs a failure once in a while.
func (m *Metrics) count(ctx context.Context, component string, r *request, code string, err error) {
	m.requests.WithLabelValues(component, r.verb, r.resource, code).Inc()
	if err != nil && m.isTimeToLog(component+" "+r.verb+" "+r.resource+" "+code) {
		logFailure(ctx, component, r, err)
	}
}

func (m *Metrics) isTimeToLog(what string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if last, isLogged := m.logged[what]; isLogged && time.Since(last) < logInterval {
		return false
	}
	m.logged[what] = time.Now()
	return true
}

// observeLag notes how much later than planned a request is sent.
func (m *Metrics) observeLag(ctx context.Context, component string, lag time.Duration) {
	m.mu.Lock()
	window := m.lags[component]
	if window == nil {
		window = &lagWindow{began: time.Now()}
		m.lags[component] = window
	}
	if age := time.Since(window.began); age >= logInterval {
		previous := window.current
		if age >= 2*logInterval {
			previous = 0
		}
		*window = lagWindow{began: time.Now(), previous: previous}
	}
	window.current = max(window.current, lag)
	m.lag.WithLabelValues(component).Set(max(window.current, window.previous).Seconds())
	m.mu.Unlock()
	if lag <= tolerableLag {
		return
	}
	m.late.WithLabelValues(component).Inc()
	if m.isTimeToLog("lag") {
		klog.FromContext(ctx).Info("Cannot keep the pace of real nodes; what is measured of the API server is not their load: give kwok-dra more CPU or simulate fewer nodes",
			"component", component, "lagSeconds", lag.Seconds())
	}
}
