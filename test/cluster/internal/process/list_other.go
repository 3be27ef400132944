//go:build !linux

package process

import (
	"os/exec"
	"strconv"
	"strings"
)

func list() ([]Process, error) {
	out, err := exec.Command("ps", "-axww", "-o", "pid=,args=").Output()
	if err != nil {
		return nil, err
	}
	var all []Process
	for line := range strings.Lines(string(out)) {
		number, args, _ := strings.Cut(strings.TrimSpace(line), " ")
		pid, err := strconv.Atoi(number)
		if err != nil {
			continue
		}
		all = append(all, Process{PID: pid, Program: firstWord(args)})
	}
	return all, nil
}

// program is empty for a process that has ended.
func program(pid int) (string, error) {
	out, err := exec.Command("ps", "-ww", "-o", "args=", "-p", strconv.Itoa(pid)).Output()
	if _, ended := err.(*exec.ExitError); ended {
		return "", nil
	}
	return firstWord(string(out)), err
}

// firstWord is the program. A directory with a blank in its name is cut short
// here, which finds too few processes and never a wrong one.
func firstWord(args string) string {
	fields := strings.Fields(args)
	if len(fields) == 0 {
		return ""
	}
	return fields[0]
}
