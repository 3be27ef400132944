package sidecar

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// MiB is a mebibyte, in bytes.
const MiB = 1 << 20

// CPUTime is the processor time that the process has taken so far, all of its
// threads together. It is known on Linux only.
func (p *Process) CPUTime() (time.Duration, error) {
	used, err := cpuTime(p.PID())
	if err != nil {
		return 0, fmt.Errorf("read the CPU time of %s: %w", p.name, err)
	}
	return used, nil
}

// CPUTimeOf is the processor time that a process has taken so far. It is known on Linux only.
func CPUTimeOf(pid int) (time.Duration, error) { return cpuTime(pid) }

// CPUTimesOf are those of several processes, by their names.
func CPUTimesOf(pids map[string]int) (map[string]time.Duration, error) {
	taken := map[string]time.Duration{}
	for name, pid := range pids {
		var err error
		if taken[name], err = cpuTime(pid); err != nil {
			return nil, fmt.Errorf("read the CPU time of %s: %w", name, err)
		}
	}
	return taken, nil
}

// ResidentMemory is how much memory the process has now, in bytes.
func (p *Process) ResidentMemory() (int64, error) { return p.readMemory("VmRSS") }

// PeakMemory is the most memory that the process has had, in bytes.
func (p *Process) PeakMemory() (int64, error) { return p.readMemory("VmHWM") }

func (p *Process) readMemory(field string) (int64, error) {
	bytes, err := memoryOf(p.PID(), field)
	if err != nil {
		return 0, fmt.Errorf("read the memory of %s: %w", p.name, err)
	}
	return bytes, nil
}

// ResidentMemoryOf is how much memory a process has now, in bytes.
func ResidentMemoryOf(pid int) (int64, error) { return memoryOf(pid, "VmRSS") }

// AvailableMemory is how much memory the machine has left for programs, in bytes.
func AvailableMemory() (int64, error) {
	all, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, fmt.Errorf("read the memory of the machine: %w", err)
	}
	return statusBytes(string(all), "MemAvailable")
}

func memoryOf(pid int, field string) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	return statusBytes(string(status), field)
}

var errNoField = errors.New("there is no such line")

// statusBytes reads a line such as "VmRSS:  1024 kB".
func statusBytes(status, field string) (int64, error) {
	for line := range strings.Lines(status) {
		if rest, found := strings.CutPrefix(line, field+":"); found {
			kilobytes, err := strconv.ParseInt(strings.TrimSpace(strings.Replace(rest, "kB", "", 1)), 10, 64)
			return kilobytes << 10, err
		}
	}
	return 0, fmt.Errorf("find %s: %w", field, errNoField)
}

// HeapAfterCollection has the sidecar collect its garbage, for which it needs
// --profiling, and returns what is left, in bytes.
func (p *Process) HeapAfterCollection(ctx context.Context) (int64, error) {
	// Not from the metrics: by the time that they are made there is garbage again.
	profile, err := p.Get(ctx, "/debug/pprof/heap?gc=1&debug=1")
	if err != nil {
		return 0, err
	}
	return HeapIn(string(profile))
}

// HeapIn finds what is in use, in bytes, in a heap profile in words.
func HeapIn(profile string) (int64, error) {
	const field = "# HeapAlloc = "
	for line := range strings.Lines(profile) {
		if bytes, ok := strings.CutPrefix(line, field); ok {
			return strconv.ParseInt(strings.TrimSpace(bytes), 10, 64)
		}
	}
	return 0, fmt.Errorf("find %q: %w", field, errNoField)
}
