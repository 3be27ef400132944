package docs

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/e2e/docs/page"
)

// newShell starts a shell that ends with the test.
func newShell(t *testing.T, dir string, environment []string) *shell {
	t.Helper()
	s, err := startShell(dir, t.TempDir(), environment)
	require.NoError(t, err)
	t.Cleanup(s.stop)
	return s
}

func commands(text string) page.Step { return page.Step{Kind: page.Commands, Text: text} }

func printing(text, output string) page.Step {
	return page.Step{Kind: page.Commands, Text: text, Output: &output}
}

func TestShellRemembers(t *testing.T) {
	t.Parallel()
	s := newShell(t, t.TempDir(), os.Environ())
	require.NoError(t, s.run(t.Context(), commands("mkdir a\ncd a\nname=value\nexport other=2\n")))
	require.NoError(t, s.run(t.Context(), printing("echo $name $other >&2; basename $PWD\n", "value 2\na\n")))
	require.ErrorContains(t, s.run(t.Context(), printing("echo one\n", "two\n")), "it printed:\n    one\nThe page says:\n    two")
}

func TestShellEndsWhereSomethingFails(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"a command":          "echo before\nfalse\necho after\n",
		"the first of two":   "echo before\nls /nowhere\ntrue\n",
		"an unknown command": "echo before\nno-such-command-at-all\n",
		"a mistake":          "echo before\nfi\n",
		"an exit":            "echo before\nexit 3\n",
		"no failure":         "echo before\n! true\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShell(t, t.TempDir(), os.Environ())
			err := s.run(t.Context(), commands(text))
			require.ErrorIs(t, err, errFailed)
			require.NotContains(t, err.Error(), "after")
		})
	}
}

func TestShellExpectsAFailure(t *testing.T) {
	t.Parallel()
	s := newShell(t, t.TempDir(), os.Environ())
	step := printing("echo no\nfalse\n", "no\n")
	step.Fails = true
	require.NoError(t, s.run(t.Context(), step))
	step.Retry = true
	require.NoError(t, s.run(t.Context(), step))
	step.Text, step.Retry = "echo no\n", false
	require.ErrorIs(t, s.run(t.Context(), step), errFailed)
}

func TestShellRetries(t *testing.T) {
	t.Parallel()
	s := newShell(t, t.TempDir(), os.Environ())
	step := printing("echo again >> runs\ntest $(wc -l < runs) -gt 1\nwc -l < runs\n", "3\n")
	step.Retry = true
	require.NoError(t, s.run(t.Context(), step))
	require.NoError(t, s.run(t.Context(), printing("wc -l < runs\n", "3\n")))

	ctx, cancel := context.WithTimeout(t.Context(), 2*pause)
	defer cancel()
	step.Text = "echo never\nfalse\n"
	require.ErrorIs(t, s.run(ctx, step), context.DeadlineExceeded)
}

func TestShellHasABackground(t *testing.T) {
	t.Parallel()
	s := newShell(t, t.TempDir(), os.Environ())
	step := commands("echo hello > greeting\ntail -f /dev/null\n")
	step.Background = true
	require.NoError(t, s.run(t.Context(), step))
	step = printing("cat greeting\n", "hello\n")
	step.Retry = true
	require.NoError(t, s.run(t.Context(), step))
}

func TestShellGivesUp(t *testing.T) {
	t.Parallel()
	s := newShell(t, t.TempDir(), os.Environ())
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, s.run(ctx, commands("echo slow\ntail -f /dev/null\n")), context.DeadlineExceeded)
}
