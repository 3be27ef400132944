// Command demo shows the closed loop with Karpenter on a real cluster that it
// starts, and leaves it running.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/kwok-dra/kwok-dra/test/tools/demo/show"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	_, err := show.Clear(ctx)
	if err == nil {
		err = play(ctx)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func play(ctx context.Context) error {
	s := &story{}
	err := show.Play(ctx, s.compile, s.startCluster, s.startSidecar, s.startKarpenter, s.closeLoop, s.runFifty)
	if err == nil {
		s.sayWhatIsNext()
	}
	return err
}
