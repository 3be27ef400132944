package kubelet

import (
	"context"
	"path"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/kwok-dra/kwok-dra/pkg/kubelet/plugin"
)

// metrics are the metrics of plugins.
type metrics struct {
	all   *prometheus.Registry
	calls *prometheus.HistogramVec
}

func newMetrics(registered func() int) *metrics {
	m := &metrics{
		all: prometheus.NewRegistry(),
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "kwok_dra_plugin_call_duration_seconds",
			Help:    "Time that plugins of real DRA drivers took for a gRPC call, by driver, method and status code.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 17),
		}, []string{"driver", "method", "code"}),
	}
	plugins := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kwok_dra_registered_plugins",
		Help: "Plugins of real DRA drivers that have registered on a fake node.",
	}, func() float64 { return float64(registered()) })
	m.all.MustRegister(m.calls, plugins)
	return m
}

// observe sees a call of a plugin.
func (m *metrics) observe(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	began := time.Now()
	err := invoke(ctx, method, request, reply, conn, options...)
	m.calls.WithLabelValues(plugin.DriverOf(ctx), path.Base(method), status.Code(err).String()).Observe(time.Since(began).Seconds())
	return err
}
