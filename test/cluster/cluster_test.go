package cluster

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/cluster/build"
	"github.com/kwok-dra/kwok-dra/test/cluster/internal/process"
)

const fakeNode = `apiVersion: v1
kind: Node
metadata:
  name: fake
  annotations: {kwok.x-k8s.io/node: fake}
`

func TestCluster(t *testing.T) {
	t.Parallel()
	c := ForTest(t, Options{Audit: true})

	t.Run("serves", func(t *testing.T) {
		require.Equal(t, "ok", kubectl(t, c, "get", "--raw", "/readyz"))
		require.Contains(t, kubectl(t, c, "version"), "Server Version: "+c.Versions().Kubernetes)
	})
	t.Run("has fake nodes", func(t *testing.T) {
		_, err := c.KubectlInput(t.Context(), strings.NewReader(fakeNode), "apply", "-f", "-")
		require.NoError(t, err)
		kubectl(t, c, "wait", "--for=condition=Ready", "node/fake", "--timeout=1m")
		kubectl(t, c, "run", "pod", "--image=fake")
		kubectl(t, c, "wait", "--for=condition=Ready", "pod/pod", "--timeout=1m")
	})
	t.Run("has authorization", func(t *testing.T) {
		out, err := c.Kubectl(t.Context(), "auth", "can-i", "list", "nodes", "--as", "system:serviceaccount:default:default")
		require.Error(t, err)
		require.Equal(t, "no\n", out)
		token := kubectl(t, c, "create", "token", "default")
		out, err = c.Kubectl(t.Context(), "get", "nodes", "--token", strings.TrimSpace(token), "--client-certificate", "/dev/null", "--client-key", "/dev/null")
		require.Error(t, err, out)
	})
	t.Run("listens on loopback only", func(t *testing.T) { requireLoopback(t, c) })
	t.Run("has a spare port", func(t *testing.T) { require.False(t, port{c.SparePort()}.isOpen()) })
	t.Run("logs requests", func(t *testing.T) { requireAudit(t, c) })
	t.Run("reports what kubectl says", func(t *testing.T) {
		_, err := c.Kubectl(t.Context(), "get", "nothing")
		require.ErrorContains(t, err, `run kubectl get nothing: exit status 1: error: the server doesn't have a resource type "nothing"`)
	})

	require.NoError(t, c.Stop())
	require.Empty(t, mentioning(t, c.home), "Stop returns when everything has ended")
	require.NoDirExists(t, c.home)
	require.NoError(t, c.Stop(), "a second time")
}

func TestComponents(t *testing.T) {
	t.Parallel()
	c := ForTest(t, Options{})
	for _, name := range []string{ControllerManager, Scheduler, Kwok, Etcd, APIServer} {
		running := func() bool {
			found, err := process.In(c.home)
			require.NoError(t, err)
			for _, p := range found {
				if filepath.Base(p.Program) == name {
					return true
				}
			}
			return false
		}
		require.True(t, running(), name)
		require.NoError(t, c.StopComponent(t.Context(), name))
		require.False(t, running(), name)
		require.NoError(t, c.StopComponent(t.Context(), name), "it is stopped already")
		require.NoError(t, c.StartComponent(t.Context(), name))
		require.True(t, running(), name)
		require.NoError(t, c.StartComponent(t.Context(), name), "it is started already")
	}
	eventually(t, "the API server serves again", func() bool {
		out, err := c.Kubectl(t.Context(), "get", "--raw", "/readyz")
		return err == nil && out == "ok"
	})
	// The controllers work as well, and nothing is lost.
	kubectl(t, c, "create", "namespace", "later")
	eventually(t, "the controller manager works again", func() bool {
		_, err := c.Kubectl(t.Context(), "get", "serviceaccount", "default", "--namespace", "later")
		return err == nil
	})
	requireLoopback(t, c)
	requireAdded(t, c)
	require.ErrorIs(t, c.StopComponent(t.Context(), "kubelet"), ErrUnknownComponent)
	require.ErrorIs(t, c.StartComponent(t.Context(), "kubelet"), ErrUnknownComponent)
}

// requireAdded adds a component, which ends with the cluster unless it is stopped.
func requireAdded(t *testing.T, c *Cluster) {
	t.Helper()
	const name = "watcher"
	require.NoError(t, c.AddComponent(name, c.Binary("kubectl"), "get", "namespaces", "--watch", "--output=name"))
	require.Error(t, c.AddComponent(name, c.Binary("kubectl")), "the name is taken")
	require.Error(t, c.AddComponent("other", "/nowhere/program"))
	sees := func(namespace string) func() bool {
		return func() bool {
			log, err := os.ReadFile(filepath.Join(c.Logs(), name+".log"))
			return err == nil && strings.Contains(string(log), "namespace/"+namespace+"\n")
		}
	}
	eventually(t, "the added component works", sees("default"))
	require.NoError(t, c.StopComponent(t.Context(), name))
	kubectl(t, c, "create", "namespace", "added")
	require.False(t, sees("added")(), "it is stopped")
	require.NoError(t, c.StartComponent(t.Context(), name))
	eventually(t, "the added component works again", sees("added"))
}

func TestOptions(t *testing.T) {
	t.Parallel()
	stage := filepath.Join(t.TempDir(), "stage.yaml")
	require.NoError(t, os.WriteFile(stage, []byte(`apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: mark}
spec:
  resourceRef: {apiGroup: v1, kind: Node}
  selector: {matchExpressions: [{key: '.metadata.labels["marked"]', operator: DoesNotExist}]}
  next: {patches: [{root: metadata, template: "labels: {marked: here}"}]}
`), 0o600))
	c := ForTest(t, Options{
		Name:          "options",
		Config:        []string{stage},
		FeatureGates:  map[string]bool{"AllAlpha": false, "DRAPartitionableDevices": true},
		RuntimeConfig: map[string]bool{"resource.k8s.io/v1beta2": true},
		Disable:       []string{Scheduler, ControllerManager},
		ExtraArgs:     map[string][]string{Etcd: {"log-level=warn"}, APIServer: {"--v=3", "profiling=false"}},
	})
	require.Equal(t, "options", c.Name())
	_, err := c.KubectlInput(t.Context(), strings.NewReader(fakeNode), "apply", "-f", "-")
	require.NoError(t, err)
	kubectl(t, c, "wait", "--for=jsonpath={.metadata.labels.marked}=here", "node/fake", "--timeout=1m")
	require.Equal(t, "kwok-options", strings.TrimSpace(kubectl(t, c, "config", "current-context")))
	require.Contains(t, kubectl(t, c, "api-versions"), "resource.k8s.io/v1beta2")

	var lines string
	for _, line := range mentioning(t, c.home) {
		require.NotContains(t, line, "/kube-scheduler ")
		require.NotContains(t, line, "/kube-controller-manager ")
		lines += line + "\n"
	}
	require.Contains(t, lines, "--feature-gates=AllAlpha=false,DRAPartitionableDevices=true")
	require.Contains(t, lines, "--log-level=warn")
	require.Contains(t, lines, "--v=3 --profiling=false")
}

func TestSetFeatureGates(t *testing.T) {
	t.Parallel()
	c := ForTest(t, Options{FeatureGates: map[string]bool{"DRAPartitionableDevices": false}})
	kubectl(t, c, "create", "namespace", "kept")
	for _, test := range []struct {
		gates   map[string]bool
		running int
	}{
		{map[string]bool{"DRAPartitionableDevices": true, "DRAConsumableCapacity": true}, len(controlPlane)},
		{nil, 0},
	} {
		require.NoError(t, c.SetFeatureGates(t.Context(), test.gates))
		eventually(t, "the controller manager works, and nothing is lost", func() bool {
			_, err := c.Kubectl(t.Context(), "get", "serviceaccount", "default", "--namespace", "kept")
			return err == nil
		})
		lines := strings.Join(mentioning(t, c.home), "\n")
		require.NotContains(t, lines, "DRAPartitionableDevices=false")
		require.Equal(t, test.running, strings.Count(lines, "--feature-gates=DRAConsumableCapacity=true,DRAPartitionableDevices=true"))
	}
}

func TestStartFails(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		options Options
		want    string
	}{
		"the API server does not start":         {options: Options{ExtraArgs: map[string][]string{APIServer: {"nonsense=1"}}}, want: "unknown flag: --nonsense"},
		"a controller does not start":           {options: Options{ExtraArgs: map[string][]string{Scheduler: {"nonsense=1"}}}, want: "kube-scheduler ended, its last lines"},
		"a configuration that is not there":     {options: Options{Config: []string{"/nowhere/stage.yaml"}}, want: "/nowhere/stage.yaml"},
		"a version that is none":                {options: Options{KubernetesVersion: "latest"}, want: `resolve Kubernetes version "vlatest"`},
		"a component that cannot be left out":   {options: Options{Disable: []string{Etcd}}, want: `disable component "etcd"`},
		"a name that would be a path elsewhere": {options: Options{Name: "../elsewhere"}, want: `name cluster "../elsewhere"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			c, err := Start(t.Context(), test.options)
			require.ErrorContains(t, err, test.want)
			require.Nil(t, c)
			require.Less(t, time.Since(began), patience, "it does not wait in vain")
		})
	}
}

func TestUpAndDown(t *testing.T) {
	t.Parallel()
	o, err := Options{}.withDefaults() // for a name that nobody uses
	require.NoError(t, err)
	found, err := Down(t.Context(), o.Name)
	require.NoError(t, err)
	require.False(t, found)
	_, err = Find(t.Context(), o.Name)
	require.ErrorIs(t, err, ErrNotFound)
	t.Cleanup(func() {
		_, _ = Down(context.Background(), o.Name)
		home, err := namedHome(o.Name)
		require.NoError(t, err)
		require.NoError(t, os.Remove(home+".lock"))
	})

	o.EnableCRDs = []string{"Stage"}
	c, created, err := Up(t.Context(), o)
	require.NoError(t, err)
	require.True(t, created)
	kubectl(t, c, "get", "stages.kwok.x-k8s.io")
	again, created, err := Up(t.Context(), o)
	require.NoError(t, err)
	require.False(t, created)
	require.Equal(t, c.Kubeconfig(), again.Kubeconfig())
	require.Equal(t, c.Versions(), again.Versions())

	kubectl(t, c, "create", "configmap", "of-a-user")

	// As after a reboot: the files are there and nothing runs.
	require.NoError(t, process.KillAll(t.Context(), c.home))
	again, created, err = Up(t.Context(), o)
	require.NoError(t, err)
	require.False(t, created)
	require.Contains(t, kubectl(t, again, "get", "configmaps"), "of-a-user")
	pids, err := again.ComponentPIDs()
	require.NoError(t, err)
	for name, pid := range pids {
		require.True(t, again.Runs(pid), name)
	}

	found, err = Down(t.Context(), o.Name)
	require.NoError(t, err)
	require.True(t, found)
	requireGone(t, c.home)
}

// TestLock: the second of two processes waits for the first.
func TestLock(t *testing.T) {
	t.Setenv(build.CacheEnv, t.TempDir())
	unlock, err := Lock(t.Context(), "a", func() { t.Error("nobody has the lock") })
	require.NoError(t, err)
	second, err := Lock(t.Context(), "a", unlock)
	require.NoError(t, err)
	second()
	_, err = Lock(t.Context(), "../a", nil)
	require.ErrorIs(t, err, errName)
}

func kubectl(t *testing.T, c *Cluster, args ...string) string {
	t.Helper()
	out, err := c.Kubectl(t.Context(), args...)
	require.NoError(t, err)
	return out
}

func requireAudit(t *testing.T, c *Cluster) {
	t.Helper()
	all, err := c.Audited(func(*AuditEvent) bool { return true })
	require.NoError(t, err)
	require.Greater(t, len(all), 10)
	for i := range all {
		require.NotEmpty(t, all[i].Verb)
		require.Contains(t, []string{"ResponseComplete", "Panic"}, all[i].Stage, all[i])
	}
	created, err := c.Audited(func(event *AuditEvent) bool { return event.Mutating() && event.Verb == "create" })
	require.NoError(t, err)
	require.NotEmpty(t, created)
	require.Less(t, len(created), len(all))
}
