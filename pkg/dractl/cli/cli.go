// Package cli is what the sub-commands of kwok-dractl have in common towards the
// shell: streams, exit codes and the name that the command goes by.
package cli

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// Name is the name of the command, as examples are written with.
const Name = "kwok-dractl"

const (
	// plugin is the name of the binary under which kubectl finds it.
	plugin = "kubectl-dra"
	// completer is the name under which kubectl asks it how to complete a line.
	completer = "kubectl_complete-dra"
)

// Streams are what a command reads and writes.
type Streams struct {
	In          io.Reader
	Out, ErrOut io.Writer
}

// Tell writes to ErrOut what is not the result. Where that fails, nobody is left
// to be told.
func (s Streams) Tell(format string, arguments ...any) {
	_, _ = fmt.Fprintf(s.ErrOut, format, arguments...)
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
)

// ExitCode is the exit code for the error that a command returns.
func ExitCode(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, ErrNegative):
		return ExitNegative
	}
	return ExitFailed
}

// Called tells from the first argument of a program, its own name, what a user
// types to run it, and with which arguments it is run. As a plugin its name is
// kubectl and the plugin's.
func Called(arguments []string) (name string, rest []string) {
	switch strings.TrimSuffix(filepath.Base(arguments[0]), ".exe") {
	case plugin:
		return "kubectl dra", arguments[1:]
	case completer:
		return "kubectl dra", append([]string{cobra.ShellCompRequestCmd}, arguments[1:]...)
	}
	return Name, arguments[1:]
}

// Rename puts the name that the user types in place of Name in all that helps
// with the command and its sub-commands.
func Rename(command *cobra.Command, name string) {
	if command.Annotations == nil {
		command.Annotations = map[string]string{}
	}
	if !command.HasParent() {
		command.Annotations[cobra.CommandDisplayNameAnnotation] = name
	}
	command.Example = strings.ReplaceAll(command.Example, Name+" ", name+" ")
	command.Long = strings.ReplaceAll(command.Long, Name+" ", name+" ")
	for _, child := range command.Commands() {
		Rename(child, name)
	}
}
