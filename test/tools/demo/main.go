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

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/tools/demo/show"
	"github.com/kwok-dra/kwok-dra/test/tools/demo/world"
)

func main() {
	down := flag.Bool("down", false, "remove what an earlier run has left running")
	afresh := flag.Bool("new", false, "remove what an earlier run has left running, and start afresh")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := runDemo(ctx, *down, *afresh)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func runDemo(ctx context.Context, down, afresh bool) error {
	unlock, err := show.Lock(ctx, os.Stdout)
	if err != nil {
		return err
	}
	defer unlock()
	if down || afresh {
		existed, err := cluster.Down(ctx, show.Name())
		if err != nil {
			return err
		}
		if down {
			fmt.Println(map[bool]string{true: "The demo is removed.", false: "There is no demo to remove."}[existed])
			return nil
		}
	}
	s := &story{options: world.Options{Name: show.Name(), Output: os.Stdout}, out: os.Stdout}
	return show.Play{Name: show.Name(), Command: show.Command, Acts: s.actsInOrder(), Running: s.runningDemo}.Run(ctx, os.Stdout)
}
