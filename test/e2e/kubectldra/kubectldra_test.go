package kubectldra

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/docs/match"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// limit is how long a line of shell, or the cluster, may take.
const limit = time.Minute

// user is somebody at a shell with a cluster.
type user struct {
	*testing.T
	cluster *cluster.Cluster
}

// newUser starts a cluster on which two drivers have published devices, and Pods have some. Nothing plays the
// nodes, and nothing of kwok-dra is there.
func newUser(t *testing.T) *user {
	t.Helper()
	u := &user{T: t, cluster: cluster.ForTest(t, cluster.Options{
		Disable: []string{cluster.Kwok}, Audit: true,
		FeatureGates: map[string]bool{"DRAPartitionableDevices": true, "DRAConsumableCapacity": true, "DRADeviceTaints": true},
		// Nobody renews the leases of the nodes.
		ExtraArgs: map[string][]string{cluster.ControllerManager: {"node-startup-grace-period=1h", "node-monitor-grace-period=1h"}},
	})}
	u.apply("{apiVersion: v1, kind: Namespace, metadata: {name: team}}", "{apiVersion: v1, kind: Namespace, metadata: {name: other}}")
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		for _, namespace := range []string{"team", "other"} {
			_, err := u.cluster.Kubectl(t.Context(), "get", "serviceaccount", "default", "-n", namespace)
			require.NoError(c, err)
		}
	}, limit, 200*time.Millisecond)
	role, err := yaml.Marshal(roleOfGuide(t))
	require.NoError(t, err)
	u.apply(nodes, published, namespaceUser, string(role), viewerBinding, workload)
	for _, pod := range []string{"train", "infer"} {
		u.must("kubectl wait -n team --for=condition=PodScheduled --timeout=1m pod/" + pod)
	}
	// As the driver and the kubelet would.
	u.must(`kubectl patch pod train -n team --subresource=status -p '{"status": {"phase": "Running"}}'`)
	return u
}

func (u *user) apply(documents ...string) {
	u.Helper()
	_, err := u.cluster.KubectlInput(u.Context(), strings.NewReader(strings.Join(documents, "\n---\n")), "apply", "-f", "-")
	require.NoError(u, err)
}

// command prepares a line of shell, with the plugin where kubectl finds it.
func (u *user) command(ctx context.Context, line string) *exec.Cmd {
	u.Helper()
	dir, err := sidecar.Programs()
	require.NoError(u, err)
	made := exec.CommandContext(ctx, "bash", "-c", "set -o pipefail; "+line)
	made.Env = u.cluster.KubectlCommand(ctx).Env
	for i, entry := range made.Env {
		if path, ok := strings.CutPrefix(entry, "PATH="); ok {
			made.Env[i] = "PATH=" + dir + string(os.PathListSeparator) + path
		}
	}
	made.Env = append(made.Env, "KUBECONFIG="+u.cluster.Kubeconfig())
	return made
}

// run runs a line of shell to its end.
func (u *user) run(line string) (out, errOut string, code int) {
	u.Helper()
	ctx, cancel := context.WithTimeout(u.Context(), limit)
	defer cancel()
	var stdout, stderr bytes.Buffer
	command := u.command(ctx, line)
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(u, err, line)
	}
	return stdout.String(), match.WithoutProgress(stderr.String()), command.ProcessState.ExitCode()
}

// must runs a line that succeeds, and says nothing on the side.
func (u *user) must(line string) string {
	u.Helper()
	out, errOut, code := u.run(line)
	require.Zero(u, code, "%s\n%s%s", line, out, errOut)
	require.Empty(u, errOut, line)
	return out
}

// TestPlugin asks what somebody asks who runs real drivers.
func TestPlugin(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	age := regexp.MustCompile(`\b\d+(s|m|m\d+s)( +)`)
	plain := func(text string) string { return age.ReplaceAllString(text, "AGE$2") }

	require.Contains(t, u.must("kubectl plugin list 2>/dev/null"), "kubectl-dra")
	require.Equal(t, `6 devices: 2 free, 3 in use, 1 blocked. 1 problem

Devices:
DRIVER             NODE POOL   PRODUCT               NODES      DEVICES   USED     FREE   BLOCKED   IN USE   UNHEALTHY
fabric.acme.test   <none>      <none>                <shared>   1         25%      0      0         1        0
gpu.acme.test      a3          Acme Rocket           2          3         50%      1      1         1        0
gpu.acme.test      a3          Acme Rocket (parts)   1          2         <none>   1      0         1        0

Problems, the most important first:
PROBLEM                              DEVICES   WHERE    PODS           MORE
Pods with claims are not scheduled   <none>    <none>   other/greedy   kubectl dra why -A
`, u.must("kubectl dra overview"))

	taken := u.must("kubectl dra devices --state in-use -o custom-columns=NODE:.node,DEVICE:.device,POD:.claims[0].pods[0] --no-headers")
	require.Regexp(t, `(?m)^<none> +port +train$\n^gpu-1 +gpu-[01] +train$\n^gpu-2 +gpu-0-half-[01] +infer$`, taken)
	require.Regexp(t, `^1 device: 1 in use\n\nNODE +DEVICE +STATE +SINCE +PRODUCT +CLAIM +POD\ngpu-1 +gpu-[01] +prepared +AGE +Acme Rocket +team/train +team/train\n$`,
		plain(u.must("kubectl dra devices --node gpu-1 --state prepared")))
	require.Equal(t, "gpu.acme.test/gpu-2/gpu-0\n", u.must("kubectl dra devices gpu-2/gpu-0 -o name"))
	require.Contains(t, u.must("kubectl dra devices gpu-2/gpu-0"), "counter memory of gpu-0 taken by gpu-0-half-")
	require.Equal(t, "gpu-1", u.must("kubectl dra devices --attribute 'uuid=ACME-1-*' -o jsonpath={.items[0].node}"))
	require.Regexp(t, `^1 node has 3 devices: 1 free, 1 in use, 1 blocked\n`, u.must("kubectl dra nodes node/gpu-2"))

	out, errOut, code := u.run("kubectl dra status")
	require.Equal(t, 2, code)
	require.Equal(t, "error: unknown command \"status\": use kubectl dra overview\n", out+errOut)
	require.Equal(t, "gpu-1\ngpu-2\n", strings.SplitAfter(u.must("kubectl __complete dra nodes '' 2>/dev/null"), ":")[0][:12])

	u.watches()
	u.namespaceUser()
	u.onlyReads()
}

// watches shows the answer again when a Pod ends.
func (u *user) watches() {
	u.Helper()
	ctx, cancel := context.WithTimeout(u.Context(), limit)
	defer cancel()
	command := u.command(ctx, "exec kubectl-dra devices --state in-use --watch --no-headers -o name")
	out, err := command.StdoutPipe()
	require.NoError(u, err)
	require.NoError(u, command.Start())
	lines := bufio.NewScanner(out)
	require.True(u, lines.Scan())
	require.Equal(u, "fabric.acme.test/rail-1/port", lines.Text())
	u.must("kubectl delete pod infer -n team --force --grace-period=0 2>/dev/null")
	var seen []string
	for lines.Scan() {
		seen = append(seen, lines.Text())
		if at := slices.Index(seen, "fabric.acme.test/rail-1/port"); at >= 0 && len(seen) > at+1 {
			break
		}
	}
	require.NoError(u, command.Process.Signal(os.Interrupt))
	rest, err := io.ReadAll(out)
	require.NoError(u, err)
	require.NoError(u, command.Wait(), "^C ends it well")
	require.NotContains(u, seen[len(seen)-1]+string(rest), "half", "%v", seen)
}

// namespaceUser has the rights of a namespace only, and then those of the ClusterRole of the reference page.
func (u *user) namespaceUser() {
	u.Helper()
	out, errOut, code := u.run("kubectl dra devices -n team --as tina --no-headers")
	require.Zero(u, code, errOut)
	require.Regexp(u, `(?m)^gpu-1 +gpu.acme.test +gpu-1 +gpu-[01] +prepared .* team/train`, out)
	require.Contains(u, errOut, "cannot list resourceslices: ask for the ClusterRole dra-viewer, or for the right to list them\n")
	require.Contains(u, errOut, "cannot list resourceclaims in all namespaces: ")
	_, errOut, code = u.run("kubectl dra devices -n other --as tina")
	require.Equal(u, 2, code)
	require.Equal(u, "error: cannot list resourceslices: ask for the ClusterRole dra-viewer, or for the right to list them\n", errOut)
	for _, command := range []string{"overview", "devices", "nodes"} {
		require.Equal(u, u.must("kubectl dra "+command+" -o json"), u.must("kubectl dra "+command+" -o json --as vera"))
	}
}

// onlyReads wants no write of the plugin in the audit log.
func (u *user) onlyReads() {
	u.Helper()
	events, err := u.cluster.Audited(func(e *cluster.AuditEvent) bool { return strings.Contains(e.UserAgent, "kubectl-dra") })
	require.NoError(u, err)
	require.NotEmpty(u, events)
	verbs := map[string]bool{}
	for i := range events {
		verbs[events[i].Verb] = true
		require.False(u, events[i].Mutating(), events[i].RequestURI)
	}
	require.Equal(u, map[string]bool{"list": true, "watch": true}, verbs)
}
