package install

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/docs/page"
	"github.com/kwok-dra/kwok-dra/test/internal/admin"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// user is somebody with a cluster and the repository, who follows the guide.
type user struct {
	*host
	*checkout
	guide map[string][]page.Step
	// programs is a directory with those of the commands, which end with the cluster.
	programs string
	// environment is that of the commands, besides what all have.
	environment []string
	// background ends what runs in the background.
	background func()
}

// follows makes a cluster with a host and no kwok.
func follows(t *testing.T, options cluster.Options) *user {
	t.Helper()
	c := cluster.ForTest(t, options)
	client, err := admin.NewClient(c.Kubeconfig())
	require.NoError(t, err)
	dir := filepath.Join(stateDir(c), "checkout")
	require.NoError(t, os.Mkdir(dir, 0o755))
	u := &user{host: newHost(t, c, client), checkout: newCheckout(t, dir), guide: guide(t)}
	built, err := sidecar.Programs()
	require.NoError(t, err)
	for _, program := range []string{"kwok-dra", "kwok-dractl"} {
		adopted, err := c.Adopt(filepath.Join(built, program))
		require.NoError(t, err)
		u.programs = filepath.Dir(adopted) // kubectl and kwokctl are there already
	}
	return u
}

// guidePath is the page that the tests follow.
const guidePath = "docs/guides/install.md"

// guide is what the page says, by section.
func guide(t *testing.T) map[string][]page.Step {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(sidecar.Root(), filepath.FromSlash(guidePath)))
	require.NoError(t, err)
	read, err := page.Parse(guidePath, content)
	require.NoError(t, err)
	sections := map[string][]page.Step{}
	for _, step := range read.Steps {
		if step.Skip == "" {
			sections[step.Section] = append(sections[step.Section], step)
		}
	}
	return sections
}

// does does what a section says, with some words of its commands replaced.
func (u *user) does(section string, replaced ...string) {
	u.T().Helper()
	steps := u.guide[section]
	require.NotEmpty(u.T(), steps, "%s has no section %s", guidePath, section)
	words := strings.NewReplacer(replaced...)
	commands := ""
	for _, step := range steps {
		switch {
		case step.Kind == page.File:
			u.write(step.Text, filepath.FromSlash(step.File))
		case step.Background:
			u.run(words.Replace(commands))
			u.start(words.Replace(step.Text))
			commands = ""
		case step.Kind == page.Commands:
			commands += step.Text // in one shell, which keeps its variables
		}
	}
	u.run(words.Replace(commands))
}

// run runs commands in the directory of the repository.
func (u *user) run(commands string) {
	u.T().Helper()
	output, err := u.shell(commands).CombinedOutput()
	require.NoError(u.T(), err, "%s\n%s", commands, output)
}

// start runs commands in the background, until the end of the test at the latest.
func (u *user) start(commands string) {
	u.T().Helper()
	log, err := os.Create(filepath.Join(u.cluster.Logs(), "background.log"))
	require.NoError(u.T(), err)
	shell := u.shellCommand(context.WithoutCancel(u.T().Context()), "exec "+commands)
	shell.Stdout, shell.Stderr = log, log
	require.NoError(u.T(), shell.Start())
	u.background = sync.OnceFunc(func() {
		_ = shell.Process.Kill()
		_ = shell.Wait()
		_ = log.Close()
	})
	u.T().Cleanup(u.background)
}

func (u *user) shell(commands string) *exec.Cmd {
	return u.shellCommand(u.T().Context(), commands)
}

func (u *user) shellCommand(ctx context.Context, commands string) *exec.Cmd {
	shell := exec.CommandContext(ctx, "sh", "-eux", "-c", u.local(commands))
	shell.Dir = u.Dir
	shell.Env = append([]string{"PATH=" + u.programs + ":" + os.Getenv("PATH"), "HOME=" + u.path("home"), "KUBECONFIG=" + u.cluster.Kubeconfig()}, u.environment...)
	return shell
}

// T is the test.
func (u *user) T() *testing.T { return u.host.T }

// TestGuide has every section of the page be followed by a test, to its end: what
// the tests cannot do here is not tested.
func TestGuide(t *testing.T) {
	t.Parallel()
	followed := []string{
		"install.yaml", "Kustomize", "Existing kwok", "Karpenter", "kwokctl", "Program", "Devices", "Break a device", "Options",
		"Replicas", "Secure serving", "Network policy", "Without custom resources", "Uninstall",
	}
	require.ElementsMatch(t, followed, slices.Collect(maps.Keys(guide(t))))
	for section, steps := range guide(t) {
		for _, step := range steps {
			require.False(t, step.Retry || step.Fails || step.Output != nil, "section %s has a marker that is not followed here", section)
		}
	}
}
