package main

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// usage is what processes had taken at a time.
type usage struct {
	at time.Time
	// cpu and memory, in MiB, are by component.
	cpu    map[string]time.Duration
	memory map[string]float64
	// own is the CPU of this process, and machine that of all processes, 0 where that is not known.
	own, machine time.Duration
}

func (w *world) readUsage() (usage, error) {
	u := usage{at: time.Now(), memory: map[string]float64{}}
	var err error
	if u.cpu, err = sidecar.CPUTimesOf(w.pids); err != nil {
		return u, err
	}
	for component, pid := range w.pids {
		resident, err := sidecar.ResidentMemoryOf(pid)
		if err != nil {
			return u, fmt.Errorf("read the memory of %s: %w", component, err)
		}
		u.memory[component] = float64(resident) / sidecar.MiB
	}
	if u.own, err = sidecar.CPUTimeOf(os.Getpid()); err != nil {
		return u, fmt.Errorf("read the own CPU time: %w", err)
	}
	stat, err := os.ReadFile("/proc/stat")
	if err == nil {
		u.machine = busyTime(string(stat))
	}
	return u, nil
}

// totalCPU is the CPU of all components.
func (u usage) totalCPU() time.Duration {
	var sum time.Duration
	for cpu := range maps.Values(u.cpu) {
		sum += cpu
	}
	return sum
}

// paceSince returns the shares of all processors that were taken since before.
func (u usage) paceSince(before usage) pace {
	processors := u.at.Sub(before.at).Seconds() * float64(runtime.NumCPU())
	own, cluster := (u.own - before.own).Seconds(), (u.totalCPU() - before.totalCPU()).Seconds()
	p := pace{Own: own / processors}
	if u.machine > 0 {
		p.Others = max(0, (u.machine-before.machine).Seconds()-own-cluster) / processors
	}
	return p
}

// busyTime reads from /proc/stat how long all processors together were busy. It counts
// hundredths of a second, and leaves out waiting for disks.
func busyTime(stat string) time.Duration {
	const hundredth, idle, waiting, stolen = 10 * time.Millisecond, 3, 4, 7
	first, _, _ := strings.Cut(stat, "\n")
	var sum time.Duration
	for i, field := range strings.Fields(strings.TrimPrefix(first, "cpu ")) {
		count, err := strconv.ParseInt(field, 10, 64)
		// The last fields, of guests, are in the first ones as well.
		if err == nil && i <= stolen && !slices.Contains([]int{idle, waiting}, i) {
			sum += time.Duration(count) * hundredth
		}
	}
	return sum
}
