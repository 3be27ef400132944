package process

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

func listProcesses() ([]Process, error) {
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
		p, found, err := inspectProcess(pid)
		if err != nil {
			return nil, err
		}
		if found {
			all = append(all, p)
		}
	}
	return all, nil
}

func inspectProcess(pid int) (p Process, found bool, err error) {
	dir := "/proc/" + strconv.Itoa(pid)
	line, err := readIfThere(dir + "/cmdline")
	if err != nil {
		return p, false, err
	}
	stat, err := readIfThere(dir + "/stat")
	if err != nil || len(stat) == 0 {
		return p, false, err
	}
	// "pid (name) state ...", and the name may have anything in it.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const state, startTime = 0, 19
	if len(fields) <= startTime {
		return p, false, fmt.Errorf("parse %s/stat", dir)
	}
	program, _, _ := bytes.Cut(line, []byte{0})
	p = Process{
		PID:     pid,
		Program: string(program),
		started: fields[startTime],
		ended:   fields[state] == "Z" || fields[state] == "X",
	}
	if len(line) == 0 && !p.ended {
		// The kernel lets the parent go on before it sets the command line of a new
		// process, and this link is there by then. It has none for its own processes
		// and for those about to end, and does not show those of other users.
		_, err := os.Readlink(dir + "/exe")
		p.turning = err == nil
	}
	return p, true, nil
}

// readIfThere returns nothing for what has ended or may not be looked at.
func readIfThere(path string) ([]byte, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ESRCH) {
		return nil, nil
	}
	return content, err
}
