package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// program builds the sidecar with the wall clock that jumps, and with a look for
// goroutines in its end. Nobody but root sets the clock of a machine, so package
// time is built anew, with one line more. It builds once per process.
var program = sync.OnceValues(func() (string, error) {
	root := sidecar.Root()
	path := filepath.Join(root, "bin", "kwok-dra-with-clock")
	// What begins with _ is no package of the module.
	overlay, err := jumpingTime(filepath.Join(root, "bin", "_clock"))
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-trimpath", "-tags", "clock", "-overlay", overlay, "-o", path, "./faults/process")
	build.Dir = filepath.Join(root, "test")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the sidecar with a clock: %w\n%s", err, output)
	}
	return path, nil
})

// What is added to package time, and what follows where.
const jumpVariable = "\n// Jump is added to what the wall clock says, in seconds.\nvar Jump atomic.Int64\n"

var jumps = map[string]string{
	"func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n": "\tsec += Jump.Load()\n",
	"import (\n\t\"errors\"\n\t\"math/bits\"\n":              "\t\"sync/atomic\"\n",
}

// jumpingTime writes what has the compiler take another source of package time.
func jumpingTime(dir string) (overlay string, err error) {
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("find GOROOT: %w", err)
	}
	own := filepath.Join(strings.TrimSpace(string(goroot)), "src", "time", "time.go")
	source, err := os.ReadFile(own)
	if err != nil {
		return "", fmt.Errorf("read package time: %w", err)
	}
	text := string(source) + jumpVariable
	for before, added := range jumps {
		if strings.Count(text, before) != 1 {
			return "", fmt.Errorf("change package time: %s does not have %q once", own, before)
		}
		text = strings.Replace(text, before, before+added, 1)
	}
	other := filepath.Join(dir, "time.go")
	encoded, err := json.Marshal(map[string]any{"Replace": map[string]string{own: other}})
	if err != nil {
		return "", fmt.Errorf("encode overlay: %w", err)
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, errors.Join(os.MkdirAll(dir, 0o755),
		os.WriteFile(other, []byte(text), 0o644), os.WriteFile(overlay, encoded, 0o644))
}

// told is what the sidecar says of its clock at the start and after each jump: the
// time, and how many seconds it is off.
var told = regexp.MustCompile(`(?m)^clock: (\S+) (-?\d+)$`)

// clocks are all that a sidecar has told.
func clocks(process *sidecar.Process) ([][]string, error) {
	log, err := os.ReadFile(process.Log)
	if err != nil {
		return nil, fmt.Errorf("read log of the sidecar: %w", err)
	}
	return told.FindAllStringSubmatch(string(log), -1), nil
}

// awaitClock waits until a sidecar has told of its clock that many times, and
// holds what it says against one's own.
func awaitClock(ctx context.Context, process *sidecar.Process, times int) error {
	for deadline := time.Now().Add(stuck); time.Now().Before(deadline); {
		all, err := clocks(process)
		if err != nil {
			return err
		}
		if len(all) < times {
			sleep(ctx, 50*time.Millisecond)
			continue
		}
		at, err := time.Parse(time.RFC3339, all[times-1][1])
		off, _ := strconv.Atoi(all[times-1][2])
		if wrong := time.Until(at) - time.Duration(off)*time.Second; err != nil || wrong.Abs() > time.Hour/2 {
			return fmt.Errorf("the clock of the sidecar has not jumped: it says %v", all[times-1])
		}
		return nil
	}
	return errors.New("the sidecar does not tell of its clock")
}

// jump puts the clock of a sidecar an hour forward or back.
func jump(ctx context.Context, process *sidecar.Process, signal syscall.Signal) error {
	if err := awaitClock(ctx, process, 1); err != nil { // it takes signals from then on
		return err
	}
	before, err := clocks(process)
	if err != nil {
		return err
	}
	if err := syscall.Kill(process.PID(), signal); err != nil {
		return fmt.Errorf("set the clock of the sidecar: %w", err)
	}
	return awaitClock(ctx, process, len(before)+1)
}

// withClockJumps has the clocks of all sidecars jump some times. Its chance is one
// of its own, so that what else befalls a seed is what it was without.
func withClockJumps(all []disruption, seed uint64, length time.Duration) []disruption {
	random := rand.New(rand.NewPCG(seed, 1))
	if random.IntN(3) > 0 {
		return all
	}
	for range 1 + random.IntN(3) {
		signal := pick(random, syscall.SIGUSR1, syscall.SIGUSR2)
		all = slices.Insert(all, random.IntN(len(all)+1), disruption{
			"clock", time.Duration(random.Int64N(int64(length / 2))),
			func(ctx context.Context, w *world) error {
				var errs []error
				for _, process := range w.running() {
					errs = append(errs, jump(ctx, process, signal))
				}
				return errors.Join(errs...)
			},
		})
	}
	return all
}
