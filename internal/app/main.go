package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/kwok-dra/kwok-dra/internal/util/flags"
	"github.com/kwok-dra/kwok-dra/internal/util/version"
)

// Main is the program kwok-dra with the given extensions. It exits with 1 after an error, which it prints.
func Main(extensions ...Extension) {
	if err := runCommand(os.Args[1:], extensions); err != nil {
		fmt.Fprintln(os.Stderr, "kwok-dra:", err)
		os.Exit(1)
	}
}

// runCommand runs until it fails, or a signal ends it.
func runCommand(arguments []string, extensions []Extension) error {
	options := NewOptions(extensions...)
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
	return Run(ctx, options)
}
