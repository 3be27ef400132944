package install

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/sidecar"
)

// user is somebody with a cluster and the repository, who follows the README.
type user struct {
	*host
	*checkout
	readme map[string]string
	// environment is that of the commands, besides what all have.
	environment []string
}

// follows makes a cluster with a host and no kwok.
func follows(t *testing.T, options cluster.Options) *user {
	t.Helper()
	c := cluster.ForTest(t, options)
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	require.NoError(t, err)
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	dir := filepath.Join(stateDir(c), "checkout")
	require.NoError(t, os.Mkdir(dir, 0o755))
	return &user{host: newHost(t, c, client), checkout: newCheckout(t, dir), readme: sections(t)}
}

// section is what a bold word at the start of a paragraph begins.
var section = regexp.MustCompile(`(?m)^\*\*([^*]+)\*\*`)

// shell is a block of commands.
var shell = regexp.MustCompile("(?s)```sh\n(.*?)```")

// sections are the commands of the README, by the words that begin a section.
func sections(t *testing.T) map[string]string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(sidecar.Root(), "kustomize", "README.md"))
	require.NoError(t, err)
	all := map[string]string{}
	starts := section.FindAllStringSubmatchIndex(string(content), -1)
	for i, start := range starts {
		end := len(content)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		for _, block := range shell.FindAllStringSubmatch(string(content[start[0]:end]), -1) {
			all[string(content[start[2]:start[3]])] += block[1]
		}
	}
	return all
}

// does runs the commands of a section, with some words replaced.
func (u *user) does(name string, replaced ...string) {
	u.T().Helper()
	commands := u.readme[name]
	require.NotEmpty(u.T(), commands, "the README has no section %s", name)
	u.run(strings.NewReplacer(replaced...).Replace(commands))
}

// run runs commands in the directory of the repository.
func (u *user) run(commands string) {
	u.T().Helper()
	output, err := u.shell(commands).CombinedOutput()
	require.NoError(u.T(), err, "%s\n%s", commands, output)
}

func (u *user) shell(commands string) *exec.Cmd {
	return u.shellCommand(u.T().Context(), commands)
}

func (u *user) shellCommand(ctx context.Context, commands string) *exec.Cmd {
	shell := exec.CommandContext(ctx, "sh", "-eux", "-c", u.local(commands, u.checkout.dir))
	shell.Dir = u.checkout.dir
	// kubectl and kwokctl end with the cluster, when started from this directory.
	programs := filepath.Dir(u.cluster.KubectlCommand(ctx).Path)
	shell.Env = append([]string{"PATH=" + programs + ":" + os.Getenv("PATH"), "HOME=" + u.path("home"), "KUBECONFIG=" + u.cluster.Kubeconfig()}, u.environment...)
	return shell
}

// T is the test.
func (u *user) T() *testing.T { return u.host.T }

// TestReadme has every section of the README be followed by a test.
func TestReadme(t *testing.T) {
	t.Parallel()
	followed := []string{"kwok 0.8", "Karpenter 1.14", "Another kwok", "kwokctl", "Devices", "Uninstall"}
	var names []string
	for name := range sections(t) {
		names = append(names, name)
	}
	require.ElementsMatch(t, followed, names)
	content, err := os.ReadFile(filepath.Join(sidecar.Root(), "kustomize", "README.md"))
	require.NoError(t, err)
	require.LessOrEqual(t, strings.Count(string(content), "\n"), 55)
}
