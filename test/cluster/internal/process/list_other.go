//go:build !linux

package process

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

func listProcesses() ([]Process, error) { return runPS("-ax") }

func inspectProcess(pid int) (p Process, found bool, err error) {
	all, err := runPS("-p", strconv.Itoa(pid))
	if err != nil || len(all) == 0 {
		return p, false, err
	}
	return all[0], true, nil
}

func runPS(which ...string) ([]Process, error) {
	cmd := exec.Command("ps", append(which, "-ww", "-o", "pid=,stat=,lstart=,args=")...)
	cmd.Env = append(os.Environ(), "LC_ALL=C") // five words for a time
	out, err := cmd.Output()
	var none *exec.ExitError
	if err != nil && !errors.As(err, &none) {
		return nil, err
	}
	var all []Process
	for line := range strings.Lines(string(out)) {
		// The program is one word: with a blank in its path it is cut short, which
		// finds too few processes and never a wrong one.
		const pid, stat, start, program = 0, 1, 2, 7
		fields := strings.Fields(line)
		if len(fields) <= program {
			continue
		}
		number, err := strconv.Atoi(fields[pid])
		if err != nil {
			continue
		}
		all = append(all, Process{
			PID:     number,
			Program: fields[program],
			started: strings.Join(fields[start:program], " "),
			ended:   strings.HasPrefix(fields[stat], "Z"),
		})
	}
	return all, nil
}
