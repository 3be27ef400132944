package process

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"syscall"
)

func list() ([]Process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var all []Process
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		name, err := program(pid)
		if err != nil {
			return nil, err
		}
		all = append(all, Process{PID: pid, Program: name})
	}
	return all, nil
}

// program is the first word of the command line: empty for a process that has
// ended, also while its parent did not ask for its result, and for those of others.
func program(pid int) (string, error) {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ESRCH) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	name, _, _ := bytes.Cut(line, []byte{0})
	return string(name), nil
}
