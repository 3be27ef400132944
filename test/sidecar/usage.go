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

// CPUTime is the processor time that the sidecar has taken so far. It is read
// from /proc, which Linux has.
func (p *Process) CPUTime() (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
	if err != nil {
		return 0, fmt.Errorf("read the CPU time of kwok-dra: %w", err)
	}
	used, err := cpuTime(string(stat))
	if err != nil {
		return 0, fmt.Errorf("read the CPU time of kwok-dra from %q: %w", stat, err)
	}
	return used, nil
}

// cpuTime reads utime and stime, the 12th and 13th field after the name in
// parentheses, in hundredths of a second.
func cpuTime(stat string) (time.Duration, error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("want 13 fields after the name, there are %d", len(fields))
	}
	user, err := strconv.Atoi(fields[11])
	if err != nil {
		return 0, err
	}
	system, err := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond, err
}

// ResidentMemory is how much memory the sidecar has now, in bytes.
func (p *Process) ResidentMemory() (int64, error) { return p.memory("VmRSS") }

// PeakMemory is the most memory that the sidecar has had, in bytes.
func (p *Process) PeakMemory() (int64, error) { return p.memory("VmHWM") }

func (p *Process) memory(field string) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		return 0, fmt.Errorf("read the memory of kwok-dra: %w", err)
	}
	bytes, err := statusBytes(string(status), field)
	if err != nil {
		return 0, fmt.Errorf("read the memory of kwok-dra: %w", err)
	}
	return bytes, nil
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
	profile, err := p.get(ctx, "/debug/pprof/heap?gc=1&debug=1")
	if err != nil {
		return 0, err
	}
	return heapAlloc(string(profile))
}

// heapAlloc finds what is in use in a profile in words.
func heapAlloc(profile string) (int64, error) {
	const field = "# HeapAlloc = "
	for line := range strings.Lines(profile) {
		if bytes, is := strings.CutPrefix(line, field); is {
			return strconv.ParseInt(strings.TrimSpace(bytes), 10, 64)
		}
	}
	return 0, fmt.Errorf("find %q: %w", field, errNoField)
}
