// Command demo shows kwok-dra at work on a real cluster that it starts, and
// leaves it running to be looked at.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/kwok-dra/kwok-dra/test/demo/show"
)

func main() {
	down := flag.Bool("down", false, "remove what an earlier run has left running")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := clean(ctx, *down)
	if err == nil && !*down {
		err = play(ctx)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// clean removes the cluster of an earlier run, and the sidecar with it.
func clean(ctx context.Context, tell bool) error {
	existed, err := show.Clear(ctx)
	if tell && err == nil {
		fmt.Println(map[bool]string{true: "The demo is removed.", false: "There is no demo to remove."}[existed])
	}
	return err
}

func play(ctx context.Context) error {
	s := &story{}
	err := show.Play(ctx, s.startCluster, s.startSidecar, s.createNodes, s.showSlices, s.runPods, s.deleteNode)
	if err == nil {
		s.sayWhatIsNext()
	}
	return err
}
