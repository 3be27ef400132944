package kubectldra

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// TestUnknownCommands names the command that answers what people ask kwok-dractl.
func TestUnknownCommands(t *testing.T) {
	t.Parallel()
	for argument, want := range map[string]string{
		"status":   `unknown command "status": use kubectl dra overview`,
		"pod":      `unknown command "pod": use kubectl dra pods`,
		"generate": `unknown command "generate": it is a command for fake nodes: use kwok-dractl generate`,
	} {
		streams, _, _, _ := genericiooptions.NewTestIOStreams()
		command := New(streams)
		command.SetArgs([]string{argument})
		require.EqualError(t, command.ExecuteContext(t.Context()), want)
	}
}

func TestArgumentsOf(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ process, want []string }{
		{[]string{"kubectl-dra"}, []string{}},
		{[]string{"/usr/bin/kubectl-dra", "pods", "-A"}, []string{"pods", "-A"}},
		{[]string{"kubectl_complete-dra", "po"}, []string{"__complete", "po"}},
		{[]string{"kubectl_complete-dra.exe", "pods", ""}, []string{"__complete", "pods", ""}},
	} {
		require.Equal(t, test.want, ArgumentsOf(test.process))
	}
}
