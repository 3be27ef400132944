// Command process is the sidecar with a look, in the end, for goroutines that it
// has left behind, and, built with the tag clock, with a clock that signals put
// forward and back.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"go.uber.org/goleak"

	"github.com/kwok-dra/kwok-dra/internal/app"
	"github.com/kwok-dra/kwok-dra/internal/extensions"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "process:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	options := app.NewOptions(extensions.All()...)
	flags := options.Flags()
	flags.StringVar(&options.Host, "host", "", "name of the Pod: several share a machine here")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if err := options.Complete(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	before := goleak.IgnoreCurrent()
	if err := app.Run(ctx, options); err != nil {
		return err
	}
	stop()
	return goleak.Find(before,
		// The connections to the API server are kept for whoever asks next.
		goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*clientConnReadLoop).run"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}
