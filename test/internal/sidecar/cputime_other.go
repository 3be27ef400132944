//go:build !linux

package sidecar

import (
	"errors"
	"os"
	"time"
)

func cpuTime(int) (time.Duration, error) {
	return 0, errors.ErrUnsupported
}

// PeakMemoryOf is the most memory that a process has had which has ended. It is known on Linux only.
func PeakMemoryOf(*os.ProcessState) (int64, error) {
	return 0, errors.ErrUnsupported
}
