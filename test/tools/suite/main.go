// Command suite runs the tests of the repository, those that wait for clocks
// beside those that compute, and says at the end what each part took and which
// failed.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/kwok-dra/kwok-dra/test/cluster/build"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

type options struct {
	ring     string
	only     string
	list     bool
	programs bool
}

func main() {
	if len(os.Args) > 2 && slices.Contains([]string{countArgument, countTestsArgument}, os.Args[1]) {
		os.Exit(runCounted(os.Args[1], os.Args[2:]))
	}
	var o options
	flag.StringVar(&o.ring, "ring", string(first), "which tests to run: first, what is run after each change; rest, all others; or all")
	flag.StringVar(&o.only, "only", "", "run the parts whose names match this regular expression")
	flag.BoolVar(&o.list, "list", false, "list the parts and run none")
	flag.BoolVar(&o.programs, "programs", false, "make the programs that tests on clusters start, and run no tests")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := runSuite(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		os.Exit(1)
	}
}

func runSuite(ctx context.Context, o options) error {
	if o.programs {
		return makePrograms(ctx)
	}
	wanted, err := regexp.Compile(o.only)
	if err != nil {
		return fmt.Errorf("read -only %q: %w", o.only, err)
	}
	every, err := allParts(ctx)
	if err != nil {
		return err
	}
	ofRing, err := ring(o.ring).partsOf(every)
	if err != nil {
		return err
	}
	chosen := matchingParts(ofRing, wanted)
	switch {
	case len(chosen) == 0 && len(matchingParts(every, wanted)) > 0:
		return fmt.Errorf("read -only %q: no part of this ring matches, make test-all has all parts", o.only)
	case len(chosen) == 0:
		return fmt.Errorf("read -only %q: no part of the tests matches, -list shows them", o.only)
	case o.list:
		for _, p := range chosen {
			fmt.Println(strings.Join(append([]string{p.name}, p.limit...), " "))
		}
		return nil
	}
	return runAll(ctx, os.Stdout, chosen)
}

// makePrograms makes the programs of a cluster, and links kwok-dra's own: parts
// that run side by side find them there, and do not replace what others run.
func makePrograms(ctx context.Context) error {
	if _, err := build.Ensure(ctx, build.Options{Output: os.Stdout}); err != nil {
		return err
	}
	_, err := sidecar.Programs()
	return err
}
