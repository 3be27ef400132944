// Command mutants proves that the fault suite finds what it is for. It puts faults
// that kwok-dra once had back, one at a time, each a patch beside this file, into a
// copy of the checkout. With each the suite must fail within some seeds, and the seed
// that fails must pass without the patch.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/kwok-dra/kwok-dra/test/cluster/gomod"
	"github.com/kwok-dra/kwok-dra/test/cluster/progress"
)

func main() {
	only := flag.String("only", "", "put back the faults whose names match this regular expression")
	s := suite{}
	flag.UintVar(&s.seeds, "seeds", 50, "within how many seeds each fault is to be found")
	flag.UintVar(&s.clusters, "clusters", 2, "clusters on which the seeds are run, side by side")
	flag.UintVar(&s.edits, "edits", 3, "how often each seed edits the configuration once all is right")
	flag.DurationVar(&s.within, "within", time.Minute, "how soon after the last fault of a seed all must be right")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := runMutants(ctx, *only, s)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// runMutants puts back one fault after the other. What keeps one from being looked for is in
// its row of the table like all else.
func runMutants(ctx context.Context, only string, s suite) error {
	root, err := gomod.Root("github.com/kwok-dra/kwok-dra")
	if err != nil {
		return err
	}
	all, err := mutantsIn(filepath.Join(root, patches), only)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "kwok-dra-mutants-")
	if err != nil {
		return fmt.Errorf("make directory for the copy of the checkout: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	s.logs = filepath.Join(root, "bin", "mutants")
	if s.checkout, err = copyCheckout(ctx, root, dir); err != nil {
		return err
	}
	compiling := progress.Start(os.Stdout, "Compiling the fault suite")
	err = errors.Join(os.MkdirAll(s.logs, 0o755), s.compile(ctx))
	compiling.Finish(err)
	if err != nil {
		return err
	}
	var outcomes []outcome
	for i, m := range all {
		step := progress.Start(os.Stdout, fmt.Sprintf("[%d/%d] %s", i+1, len(all), m.name))
		o := s.prove(ctx, m, step)
		step.Finish(o.err)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if o.err != nil {
			fmt.Println(o.err)
		}
		outcomes = append(outcomes, o)
	}
	return printTable(os.Stdout, outcomes)
}

// mutantsIn reads those of a directory whose names match.
func mutantsIn(dir, only string) ([]mutant, error) {
	wanted, err := regexp.Compile(only)
	if err != nil {
		return nil, fmt.Errorf("read -only %q: %w", only, err)
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*"+patchSuffix))
	if err != nil {
		return nil, fmt.Errorf("find patches in %s: %w", dir, err)
	}
	var all []mutant
	for _, path := range paths {
		m, err := readMutant(path)
		if err != nil {
			return nil, err
		}
		if wanted.MatchString(m.name) {
			all = append(all, m)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("read -only %q: no patch in %s matches", only, dir)
	}
	return all, nil
}
