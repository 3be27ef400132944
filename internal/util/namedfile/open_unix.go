//go:build unix

package namedfile

import (
	"os"
	"syscall"
)

// OpenFlags open a file to read it: a FIFO must not wait for a writer, and a terminal must not become
// that of the process.
const OpenFlags = os.O_RDONLY | syscall.O_NONBLOCK | syscall.O_NOCTTY
