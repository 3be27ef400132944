// Command kwok-dra gives the fake nodes of KWOK fake devices. It runs beside
// the kwok controller.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/kwok-dra/kwok-dra/pkg/app"
	"github.com/kwok-dra/kwok-dra/pkg/extensions"
	"github.com/kwok-dra/kwok-dra/pkg/flags"
	"github.com/kwok-dra/kwok-dra/pkg/version"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "kwok-dra:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	options := app.NewOptions(extensions.All()...)
	given := options.Flags()
	if err := given.Parse(arguments); errors.Is(err, pflag.ErrHelp) {
		return nil
	} else if err != nil {
		return flags.Error(given, "kwok-dra", err)
	}
	if given.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: give each file with a --config of its own", given.Arg(0))
	}
	if options.Version {
		fmt.Println("kwok-dra", version.Get())
		return nil
	}
	if err := options.Complete(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return app.Run(ctx, options)
}
