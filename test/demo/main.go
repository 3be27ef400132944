// Command demo shows kwok-dra at work on a real cluster that it starts, and
// leaves it running to be looked at.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/kwok-dra/kwok-dra/test/cluster"
)

// name is the name of the demo's cluster.
const name = "kwok-dra-demo"

func main() {
	down := flag.Bool("down", false, "remove what an earlier run has left running")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := clear(ctx, *down)
	if err == nil && !*down {
		err = show(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// clear removes the cluster of an earlier run, and the sidecar with it.
func clear(ctx context.Context, tell bool) error {
	existed, err := cluster.Down(ctx, name)
	if tell && err == nil {
		fmt.Println(map[bool]string{true: "The demo is removed.", false: "There is no demo to remove."}[existed])
	}
	return err
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
		s.startCluster, s.startSidecar, s.createNodes, s.showSlices, s.runPods, s.deleteNode,
	} {
		if err := act(ctx); err != nil {
			return err
		}
	}
	s.sayWhatIsNext()
	return nil
}
