// The command nri-runtime plays the side of a container runtime in NRI, the Node Resource Interface, for
// drivers that are plugins of it. There are no containers on a fake node, so it tells plugins of none.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/containerd/nri/pkg/adaptation"
)

func main() {
	socket := flag.String("socket", adaptation.DefaultSocketPath, "path of the socket to which plugins connect")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *socket)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, socket string) error {
	synchronize := func(ctx context.Context, tell adaptation.SyncCB) error {
		_, err := tell(ctx, nil, nil)
		return err
	}
	update := func(context.Context, []*adaptation.ContainerUpdate) ([]*adaptation.ContainerUpdate, error) {
		return nil, nil
	}
	runtime, err := adaptation.New("kwok-dra", "v0", synchronize, update, adaptation.WithSocketPath(socket),
		adaptation.WithPluginPath("")) // it starts none that are installed on this machine
	if err != nil {
		return fmt.Errorf("make the runtime: %w", err)
	}
	if err := runtime.Start(); err != nil {
		return fmt.Errorf("start the runtime: %w", err)
	}
	<-ctx.Done()
	runtime.Stop()
	return nil
}
