package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"time"

	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// agree has all sidecars show the same devices, whoever acts for them.
func (r *run) agree(ctx context.Context) error {
	if r.relaunched() && r.load.setup.selection.narrow() {
		return nil // what has left the selection is known to some of them only
	}
	var err error
	for deadline := time.Now().Add(r.within); time.Now().Before(deadline); {
		if err = sameDevices(ctx, r.world.running()); err == nil {
			return nil
		}
		sleep(ctx, lookAgain)
	}
	return err
}

func sameDevices(ctx context.Context, processes []*sidecar.Process) error {
	var first string
	for i, process := range processes {
		shown, err := devicesShown(ctx, process)
		if err != nil {
			return err
		}
		if i == 0 {
			first = shown
		}
		if shown != first {
			return fmt.Errorf("replicas: two show different devices:\n  %s\n  %s", first, shown)
		}
	}
	return nil
}

// triedBy is what only the sidecar knows that tries to prepare a claim: why that fails, and
// so the state, which follows from it and from what else is shown.
var triedBy = regexp.MustCompile(`"(failure|state)":"([^"\\]|\\.)*",?`)

// devicesShown are the devices on the page of a sidecar, by what each one can know.
func devicesShown(ctx context.Context, process *sidecar.Process) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, process.URL+"/api/devices", nil)
	if err != nil {
		return "", fmt.Errorf("ask for devices: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", fmt.Errorf("ask for devices: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	var shown struct{ Items json.RawMessage }
	if err := json.NewDecoder(response.Body).Decode(&shown); err != nil {
		return "", fmt.Errorf("read devices: %w", err)
	}
	return triedBy.ReplaceAllString(string(shown.Items), ""), nil
}

// counted holds the counters of a sidecar that was there all the time, and acted
// for everything, against what it says is prepared.
func (r *run) counted(ctx context.Context) error {
	if r.relaunched() || r.load.setup.mode != modeNone {
		return nil
	}
	var errs []error
	for _, process := range r.world.running() {
		var values [3]float64
		for i, name := range []string{"kwok_dra_claim_prepares_total", "kwok_dra_claim_unprepares_total", "kwok_dra_prepared_claims"} {
			var err error
			values[i], err = process.Metric(ctx, name)
			errs = append(errs, err)
		}
		if values[0]-values[1] != values[2] {
			errs = append(errs, fmt.Errorf("counters: %v claims are prepared, and %v prepares and %v unprepares were counted", values[2], values[0], values[1]))
		}
	}
	return errors.Join(errs...)
}
