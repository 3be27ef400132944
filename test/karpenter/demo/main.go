// Command demo shows the closed loop with Karpenter on a real cluster that it
// starts, and leaves it running to be looked at.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/kwok-dra/kwok-dra/test/cluster"
)

// name is the name of the demo's cluster, which is that of the other demo: there
// is one at a time, and "make demo-down" removes either.
const name = "kwok-dra-demo"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	_, err := cluster.Down(ctx, name)
	if err == nil {
		err = show(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// show tells the story. When it fails or is interrupted, nothing is left.
func show(ctx context.Context) (err error) {
	s := &story{}
	defer func() {
		if err != nil {
			_, downErr := cluster.Down(context.WithoutCancel(ctx), name)
			err = errors.Join(err, downErr)
		}
	}()
	for _, act := range []func(context.Context) error{
		s.startCluster, s.startSidecar, s.startKarpenter, s.closeLoop, s.runFifty,
	} {
		if err := act(ctx); err != nil {
			return err
		}
	}
	s.sayWhatIsNext()
	return nil
}
