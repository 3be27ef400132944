package app

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/restclient" // of requests to the API server
	_ "k8s.io/component-base/metrics/prometheus/workqueue"  // of the queues of all loops
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/internal/util/version"
)

// shutdownTimeout bounds how long requests under way may hold up the end.
const shutdownTimeout = 2 * time.Second

// What clients may hold up. A request to the page waits up to 25 seconds for a
// change, and a fleet of 10,000 nodes is megabytes, so requests get minutes.
const (
	headerTimeout  = 10 * time.Second
	requestTimeout = 2 * time.Minute
	idleTimeout    = 2 * time.Minute
	// maxHeaderBytes has room for a long token.
	maxHeaderBytes = 64 << 10
)

// server serves health, metrics and the page. A nil server serves nothing.
type server struct {
	listener net.Listener
	handler  http.Handler
	// secure is nil for plain HTTP.
	secure *tls.Config
}

// site is what is served.
type site struct {
	registry *prometheus.Registry
	synced   []cache.DoneChecker
	// checks return errors while a restart may help.
	checks []func() error
	// routes are those of extensions, by their patterns.
	routes map[string]http.Handler
	// guard, if there is one, guards all but health and version.
	guard func(next http.Handler) http.Handler
	// profiling adds the profiles of Go.
	profiling bool
}

// MetricsRoutes are those of more metrics.
const MetricsRoutes = "GET /metrics/"

func (s *site) newHandler() http.Handler {
	mux, guard := http.NewServeMux(), s.guard
	if guard == nil {
		guard = func(next http.Handler) http.Handler { return next }
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		for _, check := range s.checks {
			if err := check(); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
		}
		_, _ = io.WriteString(w, "ok\n")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		for _, checker := range s.synced {
			if !cache.IsDone(checker) {
				http.Error(w, "waiting for the cache of "+checker.Name(), http.StatusServiceUnavailable)
				return
			}
		}
		_, _ = io.WriteString(w, "ok\n")
	})
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) { // as Kubernetes' components
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(version.Info())
	})
	// The global registry has the metrics of client-go, Go and the process, as in Kubernetes' own components.
	metrics := prometheus.Gatherers{s.registry, legacyregistry.DefaultGatherer}
	mux.Handle("GET /metrics", guard(promhttp.HandlerFor(metrics, promhttp.HandlerOpts{})))
	for pattern, handler := range s.routes {
		mux.Handle(pattern, guard(handler))
	}
	if s.routes[MetricsRoutes] == nil { // which are no routes of a page either
		mux.Handle(MetricsRoutes, http.NotFoundHandler())
	}
	if s.profiling {
		mux.Handle("/debug/pprof/", guard(http.HandlerFunc(pprof.Index)))
		mux.Handle("/debug/pprof/profile", guard(http.HandlerFunc(pprof.Profile)))
		mux.Handle("/debug/pprof/trace", guard(http.HandlerFunc(pprof.Trace)))
	}
	return mux
}

// startServer listens on the address, so that a port that is taken is an error at once.
func startServer(ctx context.Context, address string, handler http.Handler, secure *tls.Config) (*server, error) {
	if address == "" {
		return nil, nil
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on --server-address: %w", err)
	}
	klog.FromContext(ctx).Info("Serving health and metrics", "address", listener.Addr().String(), "secure", secure != nil)
	return &server{listener, handler, secure}, nil
}

// runServer serves until ctx ends, and so do requests, also those that wait for a change. Slow and silent clients cannot
// hold it up for long; profiles extend the limit of their answers by themselves.
func (s *server) runServer(ctx context.Context) {
	if s == nil {
		return
	}
	server := &http.Server{
		Handler:           s.handler,
		TLSConfig:         s.secure,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      requestTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	stopped := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(stopped)
		deadline, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		if err := server.Shutdown(deadline); err != nil {
			klog.FromContext(ctx).Error(err, "Failed to stop the HTTP server")
		}
	})
	serve := server.Serve
	if s.secure != nil {
		serve = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
	}
	if err := serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		klog.FromContext(ctx).Error(err, "Failed to serve health and metrics")
	}
	<-stopped
}
