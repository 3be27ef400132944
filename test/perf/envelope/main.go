// Command envelope measures how far dynamic resource allocation scales, one dimension at a
// time from a base point, on real control planes with fake nodes. With two versions of
// Kubernetes it has them take turns, and fails where the newer one is worse.
//
// The nodes are objects that kwok makes Ready, and kwok runs the Pods. This program itself
// writes the ResourceSlices, and no kubelet or driver is played but along one dimension: they
// would take CPU that counts as neither the scheduler's nor the API server's.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/kwok-dra/kwok-dra/test/cluster/build"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

func main() {
	o := &options{}
	bin := filepath.Join(sidecar.Root(), "bin")
	flag.StringVar(&o.against, "against", "", "the older version of Kubernetes, which takes turns with that of KUBERNETES_VERSION")
	flag.StringVar(&o.patch, "patch", "", "a patch of a program of Kubernetes, built into the newer version")
	flag.StringVar(&o.only, "only", "", "measure the dimensions whose names match this regular expression")
	flag.IntVar(&o.rounds, "rounds", 6, "rounds of each version at each point; fewer than 4 find nothing significant")
	flag.StringVar(&o.format, "o", "table", "output: table or json")
	flag.StringVar(&o.file, "file", filepath.Join(bin, "envelope.json"), "where to write the report as JSON")
	flag.StringVar(&o.page, "page", "", "measure nothing, and write to this file a page about the reports that are named as arguments, those of the same comparison as one")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := o.run(ctx, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "envelope:", err)
		os.Exit(1)
	}
}

type options struct {
	against, patch, only string
	rounds               int
	format, file, page   string
}

var errFormat = errors.New("want table or json")

func (o *options) run(ctx context.Context, arguments []string) error {
	if o.page != "" {
		return writePage(o.page, arguments)
	}
	if o.format != "table" && o.format != "json" {
		return fmt.Errorf("output %q: %w", o.format, errFormat)
	}
	if o.rounds < 1 {
		return fmt.Errorf("%d rounds: want at least 1", o.rounds)
	}
	only, err := regexp.Compile(o.only)
	if err != nil {
		return fmt.Errorf("read -only: %w", err)
	}
	subjects, err := o.subjects()
	if err != nil {
		return err
	}
	e := &envelope{subjects: subjects, rounds: o.rounds, progress: os.Stderr}
	if err := e.choose(only); err != nil {
		return err
	}
	r, err := e.measure(ctx)
	if len(r.Points) == 0 {
		return err
	}
	// What was measured before it failed is worth telling.
	return errors.Join(err, o.writeReport(os.Stdout, r))
}

// subjects returns what takes turns, the old one first.
func (o *options) subjects() ([]subject, error) {
	newer, err := build.Versions{}.Resolve()
	if err != nil {
		return nil, err
	}
	against := o.against
	if against == "" && o.patch != "" {
		against = newer.Kubernetes
	}
	all := []subject{{Version: newer.Kubernetes, Patch: o.patch}}
	if against == "" {
		return all, nil
	}
	older, err := build.Versions{Kubernetes: against}.Resolve()
	if err != nil {
		return nil, fmt.Errorf("read -against: %w", err)
	}
	all = append([]subject{{Version: older.Kubernetes}}, all...)
	if all[0] == all[1] {
		return nil, fmt.Errorf("compare %s with itself: choose another version with -against or %s, or a -patch", all[0].name(), build.KubernetesVersionEnv)
	}
	return all, nil
}

func (o *options) writeReport(out io.Writer, r *report) error {
	if err := os.MkdirAll(filepath.Dir(o.file), 0o755); err != nil {
		return fmt.Errorf("make directory for the report: %w", err)
	}
	var content strings.Builder
	if err := r.writeJSON(&content); err != nil {
		return err
	}
	if err := os.WriteFile(o.file, []byte(content.String()), 0o644); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	var err error
	if o.format == "json" {
		_, err = io.WriteString(out, content.String())
	} else if err = r.printTables(out); err == nil {
		fmt.Fprintln(out, "Report:", o.file)
	}
	if found := countRegressions(r.Verdicts); err == nil && found > 0 {
		err = fmt.Errorf("compare %s: %d regressions", strings.Join(r.Subjects, " with "), found)
	}
	return err
}
