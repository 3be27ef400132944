package cli

import (
	"errors"
	"fmt"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

func TestCalled(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		arguments []string
		name      string
		rest      []string
	}{
		{[]string{"kwok-dractl", "render"}, "kwok-dractl", []string{"render"}},
		{[]string{"/usr/bin/kubectl-dra", "render", "-f", "a"}, "kubectl dra", []string{"render", "-f", "a"}},
		{[]string{"kubectl-dra.exe"}, "kubectl dra", []string{}},
		{[]string{"kubectl_complete-dra", "gen", ""}, "kubectl dra", []string{"__complete", "gen", ""}},
	} {
		name, rest := Called(test.arguments)
		require.Equal(t, test.name, name)
		require.Equal(t, test.rest, rest)
	}
}

func TestExitCode(t *testing.T) {
	t.Parallel()
	require.Equal(t, 0, ExitCode(nil))
	require.Equal(t, 1, ExitCode(fmt.Errorf("two Pods: %w", ErrNegative)))
	require.Equal(t, 2, ExitCode(errors.New("no cluster")))
}

func TestRename(t *testing.T) {
	t.Parallel()
	root, child := &cobra.Command{Use: Name}, &cobra.Command{Use: "render", Example: "kwok-dractl render | kwok-dractl validate", Long: "As kwok-dractl does."}
	child.Run = func(*cobra.Command, []string) {}
	root.AddCommand(child)
	Rename(root, "kubectl dra")
	require.Equal(t, "kubectl dra render | kubectl dra validate", child.Example)
	require.Equal(t, "As kubectl dra does.", child.Long)
	require.Equal(t, "kubectl dra render", child.UseLine())
}
