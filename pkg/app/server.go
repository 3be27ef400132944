package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// shutdownLimit bounds how long requests under way may hold up the end.
const shutdownLimit = 2 * time.Second

// server serves health, metrics and the page. A nil server serves nothing.
type server struct {
	listener net.Listener
	http     *http.Server
}

// handler is all that is served: the page is what is not health or metrics.
func handler(registry *prometheus.Registry, synced []cache.DoneChecker, page http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { ready(w, synced) })
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.Handle("/", page)
	return mux
}

// serve listens on the address, so that a port that is taken is an error at
// once. Requests end with ctx, also those that wait for a change.
func serve(ctx context.Context, address string, handler http.Handler) (*server, error) {
	if address == "" {
		return nil, nil
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on --server-address: %w", err)
	}
	klog.FromContext(ctx).Info("Serving health and metrics", "address", listener.Addr().String())
	return &server{
		listener: listener,
		http: &http.Server{
			Handler:           handler,
			ReadHeaderTimeout: 10 * time.Second,
			BaseContext:       func(net.Listener) context.Context { return ctx },
		},
	}, nil
}

// ready answers 200 once all caches have synced.
func ready(w http.ResponseWriter, synced []cache.DoneChecker) {
	for _, checker := range synced {
		select {
		case <-checker.Done():
		default:
			http.Error(w, "waiting for the cache of "+checker.Name(), http.StatusServiceUnavailable)
			return
		}
	}
	fmt.Fprintln(w, "ok")
}

func (s *server) run(ctx context.Context) {
	if s == nil {
		return
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		deadline, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownLimit)
		defer cancel()
		if err := s.http.Shutdown(deadline); err != nil {
			klog.FromContext(ctx).Error(err, "Stopping the HTTP server")
		}
	}()
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		klog.FromContext(ctx).Error(err, "Serving health and metrics")
	}
	<-stopped
}
