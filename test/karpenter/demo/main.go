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
	err := playStory(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func playStory(ctx context.Context) error {
	unlock, err := show.Lock(ctx, os.Stdout)
	if err != nil {
		return err
	}
	defer unlock()
	s := &story{}
	return show.Play{
		Name:    show.Name(),
		Command: "make demo-karpenter",
		Acts:    []func(context.Context) error{s.compilePrograms, s.startCluster, s.startSidecar, s.startKarpenter, s.closeLoop, s.runFifty, s.sayWhatIsNext},
		Running: s.runningDemo,
	}.Run(ctx, os.Stdout)
}
