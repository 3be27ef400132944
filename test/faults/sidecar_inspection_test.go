package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// inspect looks at the sidecars, and at what they have asked of the API server.
func (r *run) inspect(ctx context.Context) error {
	requests, writes, faults, busiest := r.world.ledger.counts()
	r.result.requests, r.result.writes, r.result.faults, r.result.launched = requests, writes, faults, r.world.launched()
	sidecars := r.world.running()
	errs := r.result.hotLoops(busiest, max(1, len(sidecars)))
	for _, process := range sidecars {
		errs = append(errs, process.WaitReady(ctx), r.leaks(ctx, process))
	}
	return errors.Join(append(errs, r.agree(ctx), r.counted(ctx))...)
}

// hotLoops finds more requests than what happened is a reason for.
func (done *result) hotLoops(busiest burst, sidecars int) []error {
	var errs []error
	// Two that see different things, since the watch of one lags, undo each other's
	// writes until both see the same.
	if busiest.count > busy*sidecars {
		errs = append(errs, fmt.Errorf("hot loop: %s came %d times within a second", busiest.key, busiest.count))
	}
	// Each change may be written, and be undone by hand; each fault be tried again,
	// and a restarted or a second sidecar do all of it once more.
	if most := 2*done.touched*sidecars + 2*done.faults; done.writes > most {
		errs = append(errs, fmt.Errorf("hot loop: %d writes for %d changes and %d faults, want at most %d", done.writes, done.touched, done.faults, most))
	}
	// What the caches do not have is asked for, and a broken watch begun anew.
	retries := int(done.settled/time.Second) * podCount // each Pod that waits is tried again every second
	if reads, most := done.requests-done.writes, startReads*done.launched+done.touched+2*done.faults+retries; reads > most {
		errs = append(errs, fmt.Errorf("hot loop: %d reads for %d changes and %d faults, want at most %d", reads, done.touched, done.faults, most))
	}
	return errs
}

// leaks waits until a sidecar has no more goroutines than one that has just been
// started.
func (r *run) leaks(ctx context.Context, process *sidecar.Process) error {
	var now float64
	for deadline := time.Now().Add(r.within); time.Now().Before(deadline); {
		var err error
		if now, err = process.Metric(ctx, "go_goroutines"); err != nil {
			return err
		}
		if now <= r.goroutines+slack {
			return nil
		}
		sleep(ctx, lookAgain)
	}
	return fmt.Errorf("goroutines leak: %v, at the start %v", now, r.goroutines)
}

// panics finds a panic in a log, also one that was recovered from, and goroutines
// that were left behind.
func panics(path string) error {
	log, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read log of the sidecar: %w", err)
	}
	for _, sign := range []string{"panic", "fatal error:", "DATA RACE", "unexpected goroutines"} {
		if i := bytes.Index(log, []byte(sign)); i >= 0 {
			return fmt.Errorf("log of the sidecar: %s", log[max(0, i-200):min(len(log), i+1500)])
		}
	}
	return nil
}
