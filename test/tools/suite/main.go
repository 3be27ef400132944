// Command suite runs all tests of the repository, those that answer first
// first, and says at the end which parts failed.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
)

func main() {
	only := flag.String("only", "", "run the parts whose names match this regular expression")
	list := flag.Bool("list", false, "list the parts and run none")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *only, *list)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only string, list bool) error {
	wanted, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("read -only %q: %w", only, err)
	}
	all, err := parts(ctx)
	if err != nil {
		return err
	}
	all = matching(all, wanted)
	if len(all) == 0 {
		return fmt.Errorf("read -only %q: no part of the tests matches, -list shows them", only)
	}
	if list {
		for _, p := range all {
			fmt.Println(p.name)
		}
		return nil
	}
	return runAll(ctx, os.Stdout, all)
}
