package printing

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kwok-dra/kwok-dra/internal/kubectldra/reading"
)

// Frame is what all commands share: they check what they are given, find the cluster, and print an answer.
type Frame struct {
	*Flags
	genericiooptions.IOStreams
	// AllNamespaces says that the user asks for all of them.
	AllNamespaces bool
	// Namespace is empty for all. Reader reads the cluster.
	Namespace string
	Reader    *reading.Reader

	reach *reading.Flags
}

// NewFrame makes a frame, and adds its flags to a command.
func NewFrame(command *cobra.Command, reach *reading.Flags, streams genericiooptions.IOStreams) *Frame {
	f := &Frame{Flags: NewFlags(), IOStreams: streams, reach: reach}
	f.AddTo(command)
	return f
}

// Run makes a command answer. Check, if any, says what is wrong with the arguments, before anything is read.
func (f *Frame) Run(command *cobra.Command, check func(arguments []string) error, answer func(ctx context.Context) error) {
	command.RunE = func(command *cobra.Command, arguments []string) (err error) {
		if err := f.Validate(); err != nil {
			return err
		}
		if f.Namespace, err = f.reach.Namespace(f.AllNamespaces); err != nil {
			return err
		}
		if check != nil {
			if err := check(arguments); err != nil {
				return err
			}
		}
		if f.Reader, err = f.reach.NewReader(); err != nil {
			return err
		}
		return answer(command.Context())
	}
}

// PrintObjects prints objects for programs.
func PrintObjects[T any](f *Frame, objects []T) error {
	all := make([]any, len(objects))
	for i := range objects {
		all[i] = objects[i]
	}
	return f.Print(f.Out, nil, all)
}

// TellUnseen says what the answer lacks.
func (f *Frame) TellUnseen() { Unseen(f.ErrOut, f.Reader.Unseen()) }
