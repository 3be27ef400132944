// Command demo shows kwok-dra at work on a real cluster that it starts, and
// leaves it running.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/kwok-dra/kwok-dra/test/tools/demo/show"
	"github.com/kwok-dra/kwok-dra/test/tools/demo/world"
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

// clean removes the cluster of an earlier run, and kwok-dra with it.
func clean(ctx context.Context, tell bool) error {
	existed, err := show.Clear(ctx)
	if tell && err == nil {
		fmt.Println(map[bool]string{true: "The demo is removed.", false: "There is no demo to remove."}[existed])
	}
	return err
}

func play(ctx context.Context) error {
	s := &story{options: world.Options{Name: show.Name(), Output: os.Stdout}, out: os.Stdout}
	return show.Play(ctx, s.acts()...)
}
