package sidecar

import (
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
