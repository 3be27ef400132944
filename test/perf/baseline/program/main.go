// Command program is the baselines that kwok-dra is measured against; package
// baseline says what each does. It takes the sidecar's arguments.
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"sync/atomic"
	"syscall"

	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/test/internal/admin"
	"github.com/kwok-dra/kwok-dra/test/perf/baseline"
)

func main() {
	p := &program{}
	klog.InitFlags(nil)
	flag.StringVar(&p.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster")
	flag.StringVar(&p.address, "server-address", "", "where to serve /readyz")
	flag.StringVar(&p.work, "work", "", "what to do: one of the names in package baseline")
	flag.StringVar(&p.slices, "slices", "", "file of the ResourceSliceList to publish")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := p.runWrites(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "baseline:", err)
		os.Exit(1)
	}
}

type program struct {
	kubeconfig, address, work, slices string

	client kubernetes.Interface
	ready  atomic.Bool
}

// writes are what a baseline does when it is told to begin. They return when all
// is written, or when ctx ends.
type writes func(ctx context.Context) error

// prepareWrites returns the writes of the work when they can begin.
func (p *program) prepareWrites(ctx context.Context) (writes, error) {
	switch p.work {
	case baseline.RawSlices:
		return p.rawSlices()
	case baseline.WatchingSlices:
		return p.watchingSlices(ctx)
	case baseline.RawClaims:
		return p.rawClaims(ctx)
	case baseline.WatchingClaims:
		return p.watchingClaims(ctx)
	case baseline.Lists:
		return p.fillCaches(ctx)
	}
	return nil, fmt.Errorf("there is no --work %q", p.work)
}

func (p *program) runWrites(ctx context.Context) (err error) {
	// The environment is the sidecar's. Plain caches take more memory than that
	// allows, and would be slow for lack of it.
	debug.SetMemoryLimit(math.MaxInt64)
	begin := make(chan os.Signal, 1)
	signal.Notify(begin, baseline.BeginSignal)
	if p.client, err = admin.NewClient(p.kubeconfig); err != nil {
		return err
	}
	if err := p.serveReadiness(ctx); err != nil {
		return err
	}
	write, err := p.prepareWrites(ctx)
	if err != nil {
		return err
	}
	p.ready.Store(true)
	select {
	case <-ctx.Done():
		return nil
	case <-begin:
	}
	if err := write(ctx); err != nil {
		return err
	}
	<-ctx.Done() // until then it can be asked for the CPU that it has taken
	return nil
}

// serveReadiness tells who asks whether the writes can begin.
func (p *program) serveReadiness(ctx context.Context) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", p.address)
	if err != nil {
		return fmt.Errorf("listen on --server-address: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !p.ready.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	// It is by this message that whoever started the program finds it.
	klog.FromContext(ctx).Info("Serving health and metrics", "address", listener.Addr().String())
	go func() { _ = http.Serve(listener, mux) }() // ends with the process
	return nil
}
