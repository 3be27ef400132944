package sidecar

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime reads the clock of a process's CPU time, to the nanosecond. /proc has
// hundredths of a second, too coarse for what takes some tenths.
func cpuTime(pid int) (time.Duration, error) {
	const scheduled = 2 // CPUCLOCK_SCHED: the id of the clock is as of clock_getcpuclockid(3)
	var used unix.Timespec
	err := unix.ClockGettime(int32(^pid<<3|scheduled), &used)
	return time.Duration(used.Nano()), err
}

// PeakMemoryOf is the most memory that a process has had which has ended, in bytes. It is known on Linux
// only.
func PeakMemoryOf(process *os.ProcessState) (int64, error) {
	used, isKnown := process.SysUsage().(*syscall.Rusage)
	if !isKnown {
		return 0, fmt.Errorf("read the usage of process %d: it is a %T", process.Pid(), process.SysUsage())
	}
	return used.Maxrss << 10, nil
}
