// Package compile shows how far the go command is with a build.
package compile

import (
	"bufio"
	"io"
	"strings"

	"github.com/kwok-dra/kwok-dra/test/cluster/progress"
)

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
