package dractl

import (
	"bufio"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/internal/dractl"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// TestExamples runs every example of the help, as a user would who types it. An
// answer may be no; what fails is what could not be done.
func TestExamples(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.must("kubectl apply --server-side -k " + sidecar.Root() + "/kustomize/crd")
	s.must("kubectl create configmap -n kube-system kwok-dra --from-file templates.yaml")
	s.sidecar("--enable-crds")
	s.must("kubectl apply -f nodes.yaml -f classes.yaml -f cluster")
	s.must("kubectl wait --for=jsonpath='{.status.phase}'=Running --timeout=2m pod/training-0")
	s.watchesAtTerminal()

	root := dractl.New(cli.Streams{})
	examples := examplesOf(root)
	require.NotEmpty(t, examples)
	for _, line := range examples {
		if checksPrograms.MatchString(line) {
			continue // packages checkdriver, checkscheduler and karpenter/e2e run these
		}
		t.Log(line)
		if strings.Contains(line, "--watch") {
			s.watches(line)
			continue
		}
		r := s.run(line)
		require.LessOrEqual(t, r.code, cli.ExitNegative, "%s\n%s", line, r)
		require.True(t, r.out+r.errOut != "" || strings.Contains(line, " > ") || strings.Contains(line, " diff "), "%s prints nothing\n%s", line, r)
	}
	s.must("kwok-dractl validate -f fleet.yaml")
	s.exitCodes()
	s.keepsKeys()
}

// checksPrograms matches commands that judge a program of the user's.
var checksPrograms = regexp.MustCompile(" check-(driver|scheduler|autoscaler)")

// examplesOf are the lines of all examples of a command and its sub-commands.
func examplesOf(command *cobra.Command) []string {
	var lines []string
	for line := range strings.Lines(command.Example) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	for _, child := range command.Commands() {
		lines = append(lines, examplesOf(child)...)
	}
	return lines
}

// watches runs a line that does not end by itself until it has printed one.
func (s *shell) watches(line string) {
	s.Helper()
	command := s.command(s.Context(), "exec "+line)
	out, err := command.StdoutPipe()
	require.NoError(s, err)
	require.NoError(s, command.Start())
	first, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(s, command.Process.Kill())
	_, _ = io.Copy(io.Discard, out)
	_ = command.Wait() // it was killed
	require.NoError(s, err)
	require.NotEmpty(s, strings.TrimSpace(first))
}

// exitCodes tell an answer that is no from a command that failed.
func (s *shell) exitCodes() {
	s.Helper()
	require.Equal(s, cli.ExitNegative, s.run("kwok-dractl validate -f invalid.yaml").code)
	require.Equal(s, cli.ExitFailed, s.run("kwok-dractl validate -f https://example.com/templates.yaml").code)
	require.Contains(s, s.must("kwok-dractl __complete generate --profile ''"), "nvidia-h100-mig\n")
}
