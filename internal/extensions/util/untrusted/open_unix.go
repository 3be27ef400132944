//go:build unix

package untrusted

import "syscall"

// noFollow refuses a symbolic link, and onlyFolder all but a folder.
const noFollow, onlyFolder = syscall.O_NOFOLLOW, syscall.O_DIRECTORY
