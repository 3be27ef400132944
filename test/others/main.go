// Command others runs test suites of other projects, unmodified, on clusters that
// have fake nodes only, and prints one table of what came of them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/kwok-dra/kwok-dra/test/cluster/build"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
	"github.com/kwok-dra/kwok-dra/test/others/report"
)

var errFailed = errors.New("not all specs passed")

func main() {
	r := &runner{}
	name := flag.String("suite", "", "the suite to run, default all: "+strings.Join(names(), ", "))
	source := flag.String("src", "", "a checkout, for suites of which no module is published")
	format := flag.String("o", "table", "what to print: table or json")
	flag.StringVar(&r.focus, "focus", "", "run only the specs whose names match this regular expression")
	flag.StringVar(&r.logs, "logs", filepath.Join(sidecar.Root(), "bin", "others"), "directory for logs")
	flag.StringVar(&r.without, "without", "", "take away what kwok-dra does, to see which specs need it: devices or preparation")
	record := flag.Bool("record", false, "write what came of each suite into docs/works-with.json, from which make generate-docs makes the tables of docs/works-with.md")
	stay := flag.Bool("up", false, "run no specs: leave the programs of one suite running, to be tried, until Ctrl-C, or until the command that follows the flags has ended, which has $KUBECONFIG")
	flag.Parse()
	if *record {
		r.record = filepath.Join(sidecar.Root(), "docs", "works-with.json")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	wanted := selection{*name, *source}
	var err error
	if *stay {
		err = up(ctx, r, wanted, flag.Args())
	} else {
		err = run(ctx, r, wanted, *format)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "others:", err)
		os.Exit(1)
	}
}

// run runs suites one after another. One that cannot even start is told like the
// others.
func run(ctx context.Context, r *runner, wanted selection, format string) error {
	printTo, ok := map[string]printer{"table": report.Table, "json": report.JSON}[format]
	if !ok {
		return fmt.Errorf("read -o %q: want table or json", format)
	}
	chosen, err := wanted.suites(ctx)
	if err != nil {
		return err
	}
	if r.record != "" && (r.focus != "" || r.without != "") {
		return errors.New("read -record: only whole suites are recorded, so do not use it with -focus or -without")
	}
	versions, err := build.Versions{}.Resolve()
	if err != nil {
		return err
	}
	var results []*report.Suite
	for _, s := range chosen {
		if s, err = s.on(versions.Kubernetes).lacking(r.without); err != nil {
			return err
		}
		results = append(results, r.run(ctx, s))
		if ctx.Err() != nil {
			return fmt.Errorf("run %s: interrupted", s.name)
		}
	}
	if err := printTo(os.Stdout, results); err != nil {
		return fmt.Errorf("print results: %w", err)
	}
	if slices.ContainsFunc(results, (*report.Suite).Bad) {
		return errFailed
	}
	return nil
}
