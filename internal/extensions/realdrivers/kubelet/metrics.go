package kubelet

import (
	"context"
	"path"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/plugin"
	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubeletmetrics"
)

// metrics has the metrics of plugins.
type metrics struct {
	all   *prometheus.Registry
	calls *prometheus.HistogramVec
	// kubelet has the calls once more, under the kubelet's own metric name.
	kubelet *kubeletmetrics.Metrics
}

func newMetrics(countPlugins func() int, kubelet *kubeletmetrics.Metrics) *metrics {
	m := &metrics{
		all:     prometheus.NewRegistry(),
		kubelet: kubelet,
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "kwok_dra_plugin_call_duration_seconds",
			Help:    "Time that plugins of real DRA drivers took for a gRPC call, by driver, method and status code.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 17),
		}, []string{"driver", "method", "code"}),
	}
	plugins := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kwok_dra_registered_plugins",
		Help: "Plugins of real DRA drivers that have registered on a fake node.",
	}, func() float64 { return float64(countPlugins()) })
	m.all.MustRegister(m.calls, plugins)
	return m
}

// observeCall is the interceptor that measures calls of plugins.
func (m *metrics) observeCall(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	began := time.Now()
	err := invoke(ctx, method, request, reply, conn, options...)
	took, driver, code := time.Since(began), plugin.DriverOf(ctx), status.Code(err).String()
	m.calls.WithLabelValues(driver, path.Base(method), code).Observe(took.Seconds())
	m.kubelet.Call(driver, method, code, took)
	return err
}
