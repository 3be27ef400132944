// Package compile runs the go command's builds and shows how far they are.
package compile

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"github.com/kwok-dra/kwok-dra/test/cluster/progress"
)

// Run runs a "go build -v" and shows it in the step, as Follow does. It returns the
// last lines that the command has written, which say why where it fails.
func Run(cmd *exec.Cmd, total int, p *progress.Step) (tail string, err error) {
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return "", fmt.Errorf("open pipe to the compiler: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("start the compiler: %w", err)
	}
	lines := Follow(stderr, total, p)
	return strings.Join(lines, "\n"), cmd.Wait()
}

// Follow reads what "go build -v" writes to its standard error, until the end,
// sets the state of the step, and returns the last other lines, which is where a
// failing build says why. The total of packages is an upper limit: what the go
// command has compiled before is never reported.
func Follow(stderr io.Reader, total int, p *progress.Step) (tail []string) {
	const keep = 30
	lines := bufio.NewScanner(stderr)
	lines.Buffer(nil, 1<<20)
	for compiled, downloaded := 0, 0; lines.Scan(); {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "go: downloading "):
			downloaded++
			p.State("%d modules downloaded", downloaded)
		case !strings.ContainsAny(line, " \t:"): // a bare import path
			compiled++
			p.State("%d of at most %d packages compiled", compiled, total)
		default:
			tail = append(tail, line)
			tail = tail[max(0, len(tail)-keep):]
		}
	}
	// A line beyond the buffer: the compiler must not block on a full pipe.
	_, _ = io.Copy(io.Discard, stderr)
	return tail
}
