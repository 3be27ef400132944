package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"

	"github.com/kwok-dra/kwok-dra/internal/util/suggest"
)

// Name is the name of the command in examples.
const Name = "kwok-dractl"

// Streams are what a command reads and writes.
type Streams struct {
	In          io.Reader
	Out, ErrOut io.Writer
}

// Tell writes to ErrOut what is not part of the result. If that fails, there is
// nowhere to report it; if nobody reads it any more, the command is stopped.
func (s Streams) Tell(format string, arguments ...any) {
	if _, err := fmt.Fprintf(s.ErrOut, format, arguments...); errors.Is(err, syscall.EPIPE) {
		stopUnread()
	}
}

// ErrNegative says that a command did its work and the answer is no: documents
// are invalid, there are differences, a Pod does not fit. The command has said
// so itself, so nothing more is printed.
var ErrNegative = errors.New("the answer is no")

// The exit codes.
const (
	// ExitNegative is that of ErrNegative.
	ExitNegative = 1
	// ExitFailed is that of all other errors: the command could not do its work.
	ExitFailed = 2
	// ExitUnread is that of a command of which nobody reads the output any more. Shells show it for programs that
	// SIGPIPE ends, and nothing is printed then either.
	ExitUnread = 128 + int(syscall.SIGPIPE)
)

// ExitCode is the exit code for the error that a command returns.
func ExitCode(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, ErrNegative):
		return ExitNegative
	case isUnread(err):
		return ExitUnread
	}
	return ExitFailed
}

// isUnread reports whether an error is nothing but the EPIPE of a write to a file, such as standard output. That of a connection
// does not count.
func isUnread(err error) bool {
	write, isFile := errors.AsType[*fs.PathError](err)
	return isFile && errors.Is(write, syscall.EPIPE) && err.Error() == write.Error()
}

// FirstFew lists names. Of more than most and one, it has the first ones and how many more there are.
func FirstFew(names []string, most int) string {
	if more := len(names) - most; more > 1 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}

// NotFound says what is not there, and what the user may have meant by its name, or else what to do.
func NotFound(problem, name string, names []string, advice string) error {
	if nearest := suggest.Nearest(name, names); nearest != "" {
		return fmt.Errorf("%s: did you mean %s?", problem, nearest)
	}
	return fmt.Errorf("%s: %s", problem, advice)
}
