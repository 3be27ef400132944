package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/kwok-dra/kwok-dra/test/cluster/progress"
)

var errNoPrograms = errors.New("the programs of a cluster could not be made")

// runAll runs the parts one after another. One that fails does not keep the
// others from running, except those that need the programs of a cluster when
// these could not be made.
func runAll(ctx context.Context, out io.Writer, all []part) error {
	started := time.Now()
	var failed, skipped []string
	noPrograms := false
	for i, p := range all {
		if noPrograms && p.needsCluster {
			skipped = append(skipped, p.name)
			continue
		}
		err := runPart(ctx, out, fmt.Sprintf("[%d/%d] %s", i+1, len(all), p.name), p)
		if ctx.Err() != nil {
			return fmt.Errorf("run %s: interrupted", p.name)
		}
		if err != nil {
			failed = append(failed, p.name)
			noPrograms = noPrograms || p.reports
		}
	}
	elapsed := time.Since(started).Round(time.Second)
	if len(failed) == 0 {
		fmt.Fprintf(out, "All %d parts passed in %s.\n", len(all), elapsed)
		return nil
	}
	if len(skipped) > 0 {
		fmt.Fprintf(out, "Not run, since %v: %s\n", errNoPrograms, strings.Join(skipped, ", "))
	}
	fmt.Fprintf(out, "%d of %d parts passed in %s.\n", len(all)-len(failed)-len(skipped), len(all), elapsed)
	return fmt.Errorf("failed: %s", strings.Join(failed, ", "))
}

func runPart(ctx context.Context, out io.Writer, title string, p part) error {
	if p.reports {
		fmt.Fprintln(out, title)
		err := p.run(ctx, out)
		if err != nil {
			fmt.Fprintln(out, err)
		}
		return err
	}
	var log bytes.Buffer
	step := progress.Start(out, title)
	err := p.run(ctx, &log)
	step.Finish(err)
	if err != nil {
		_, _ = out.Write(log.Bytes())
		fmt.Fprintf(out, "%s: %v\n", p.name, err)
	}
	return err
}

func interrupt(process *os.Process) error {
	return process.Signal(os.Interrupt)
}
