//go:build unix

package untrusted

import (
	"os"
	"syscall"
)

const (
	// opened are the flags of each open: a FIFO must not wait for a writer, and a terminal must not become
	// that of the process.
	opened = os.O_RDONLY | syscall.O_NONBLOCK | syscall.O_NOCTTY
	// noFollow refuses a symbolic link, and onlyFolder all but a folder.
	noFollow   = syscall.O_NOFOLLOW
	onlyFolder = syscall.O_DIRECTORY
)
