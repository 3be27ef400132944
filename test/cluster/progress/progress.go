// Package progress tells people at a terminal, or readers of a log, that
// something long is still going on.
package progress

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// How often a step tells about itself: on a terminal the same line is written
// again, in a log every line stays.
const (
	terminalInterval = time.Second
	logInterval      = time.Minute
)

// A Step is one thing that takes long.
type Step struct {
	out      io.Writer
	title    string
	terminal bool
	started  time.Time
	stop     chan struct{}
	done     sync.WaitGroup

	mu    sync.Mutex
	state string
}

// Start begins a step and says so.
func Start(out io.Writer, title string) *Step { return startStep(out, title, isTerminal(out)) }

func startStep(out io.Writer, title string, terminal bool) *Step {
	s := &Step{out: out, title: title, terminal: terminal, started: time.Now(), stop: make(chan struct{})}
	interval := logInterval
	if s.terminal {
		interval = terminalInterval
	}
	s.writeLine(title)
	s.done.Go(func() { s.redrawUntilEnd(interval) })
	return s
}

func (s *Step) redrawUntilEnd(interval time.Duration) {
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-ticks.C:
			s.writeLine(s.formatLine())
		}
	}
}

// State sets what the step tells about itself beside the time that it takes.
func (s *Step) State(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = fmt.Sprintf(format, args...)
}

// Finish ends the step with how it went.
func (s *Step) Finish(err error) {
	close(s.stop)
	s.done.Wait()
	result := "done in"
	if err != nil {
		result = "failed after"
	}
	s.writeLine(fmt.Sprintf("%s: %s %s", s.title, result, s.elapsedTime(100*time.Millisecond)))
	if s.terminal {
		fmt.Fprintln(s.out)
	}
}

func (s *Step) formatLine() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := s.title + ": " + s.elapsedTime(time.Second)
	if s.state != "" {
		line += ", " + s.state
	}
	return line
}

func (s *Step) elapsedTime(unit time.Duration) string {
	return time.Since(s.started).Round(unit).String()
}

func (s *Step) writeLine(line string) {
	if s.terminal {
		// Back to the start of the line, and clear what is longer than the new text.
		fmt.Fprintf(s.out, "\r%s\x1b[K", line)
		return
	}
	fmt.Fprintln(s.out, line)
}

func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
