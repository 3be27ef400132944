// Command scale grows a fleet of fake nodes on a real control plane, gives their
// devices to Pods, and measures at each size what kwok-dra takes for it. It says
// which of its bars are met, or which limit kept it from growing.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/kwok-dra/kwok-dra/test/internal/fleet"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

func main() {
	s := &scale{}
	flag.IntVar(&s.nodes, "nodes", 10000, "nodes of the largest fleet; it is also measured at a tenth and three tenths of that, or at 10,000 nodes if it is larger")
	flag.IntVar(&s.pods, "pods", 2, "Pods on each node, with a claim of one device each")
	flag.DurationVar(&s.rest, "rest", 45*time.Second, "how long each fleet is watched while it only heartbeats")
	flag.StringVar(&s.format, "o", "table", "output: table or json")
	flag.StringVar(&s.plot, "plot", filepath.Join(sidecar.Root(), "bin", "scale.svg"), "where to write the plot")
	flag.BoolVar(&s.check, "check", false, "fail where a bar is not met")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := s.measureAndReport(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

type scale struct {
	nodes, pods  int
	rest         time.Duration
	format, plot string
	check        bool
}

var errFormat = errors.New("want table or json")

func (s *scale) measureAndReport(ctx context.Context) error {
	switch {
	case s.format != "table" && s.format != "json":
		return fmt.Errorf("output %q: %w", s.format, errFormat)
	case s.nodes < 10:
		return fmt.Errorf("%d nodes: want at least 10", s.nodes)
	case s.pods < 1 || s.pods > fleet.Devices:
		return fmt.Errorf("%d Pods on each node: want 1 to %d, as there are devices", s.pods, fleet.Devices)
	case s.rest < heartbeatInterval:
		return fmt.Errorf("-rest %s: want at least %s, in which each node heartbeats once", s.rest, heartbeatInterval)
	}
	r, err := s.measureSizes(ctx)
	if len(r.Sizes) == 0 {
		return err
	}
	// What was measured before a limit was met is worth telling.
	return errors.Join(err, s.writeReport(os.Stdout, r))
}

// usualFleet is the largest fleet whose limits are the usual ones.
const usualFleet = 10_000

// fleetSizes are those at which the fleet is measured.
func (s *scale) fleetSizes() []int {
	if s.nodes > usualFleet {
		return []int{usualFleet, s.nodes}
	}
	return []int{s.nodes / 10, s.nodes * 3 / 10, s.nodes}
}

// measureSizes grows the fleet, and returns what it has measured also with an error.
func (s *scale) measureSizes(ctx context.Context) (r report, err error) {
	w, err := newWorld(ctx, s.nodes, s.pods)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, w.stopCluster()) }()
	r.Machine = fleet.Machine(w.cluster)
	for _, size := range s.fleetSizes() {
		fmt.Fprintf(os.Stderr, "%d nodes\n", size)
		f, err := w.growFleet(ctx, size, s.rest)
		if err != nil {
			return r, fmt.Errorf("grow to %d nodes: %w", size, err)
		}
		r.Sizes = append(r.Sizes, f)
		fmt.Fprintf(os.Stderr, "  %s MiB at most, ready in %.1f s, %.2f of plain informers, %.3f s per 1,000 heartbeats, %.0f nodes/s, %.0f Pods/s\n",
			formatMebibytes(f.Memory.Peak), f.Restart.medianReady(), f.Restart.readyToPlain().Median, f.Rest.HeartbeatCPU, f.Writing.PublishRate, f.Writing.PrepareRate)
	}
	r.Bars = checkLimits(r.Sizes)
	return r, nil
}

func (s *scale) writeReport(out io.Writer, r report) error {
	if err := os.MkdirAll(filepath.Dir(s.plot), 0o755); err != nil {
		return fmt.Errorf("make directory for the plot: %w", err)
	}
	if err := os.WriteFile(s.plot, []byte(drawPlot(r)), 0o644); err != nil {
		return fmt.Errorf("write plot: %w", err)
	}
	if err := s.printReport(out, r); err != nil {
		return err
	}
	if missed := r.countMissed(); s.check && missed > 0 {
		return fmt.Errorf("check bars: %d of %d are not met", missed, len(r.Bars))
	}
	return nil
}

func (s *scale) printReport(out io.Writer, r report) error {
	if s.format == "table" {
		return r.printTables(out, s.plot)
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(r); err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	return nil
}
