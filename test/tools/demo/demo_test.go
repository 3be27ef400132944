package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
	"github.com/kwok-dra/kwok-dra/test/tools/demo/show"
	"github.com/kwok-dra/kwok-dra/test/tools/demo/world"
)

// TestDemo plays the demo, looks for it again, and then does what its last words say.
func TestDemo(t *testing.T) {
	name := "demo-t-" + strings.ToLower(rand.Text()[:6])
	t.Cleanup(func() {
		_, err := cluster.Down(context.Background(), name)
		require.NoError(t, err)
	})
	var out bytes.Buffer
	s := &story{options: world.Options{Name: name}, out: &out}
	play := show.Play{Name: name, Command: show.Command, Acts: s.actsInOrder(), Running: s.runningDemo}
	require.NoError(t, play.Run(t.Context(), &out), "%s", &out)
	requireFoundAgain(t, s, play)
	device, err := s.world.ToBreak(t.Context())
	require.NoError(t, err)
	require.Equal(t, 12, device.Free)
	require.Equal(t, []string{"h100-0", "h100-1"}, device.Nodes)
	words := lastWords(s.world, s.runningDemo().Access(), device)
	require.True(t, strings.HasSuffix(out.String(), words), "%s", &out)
	require.Contains(t, words, device.Pod)
	requirePage(t, s.runningDemo().Page)

	lines := commands(words)
	require.Equal(t, "make demo-down", lines[len(lines)-1])
	taint := slices.Index(lines, device.Taint())
	read(t, lines[:taint+1])
	_, err = s.world.Cluster.Kubectl(t.Context(), "wait", "--for=delete", "--timeout=2m", "pod/"+device.Pod)
	require.NoError(t, err)
	_, err = s.world.Cluster.Kubectl(t.Context(), "rollout", "status", "deployment/training", "--timeout=2m")
	require.NoError(t, err)
	require.Contains(t, read(t, append(exports(lines), lines[taint+1:len(lines)-1]...)), "tainted")
	require.Eventually(t, func() bool { // a new Pod may be without a device yet
		moved, err := s.world.ToBreak(t.Context())
		return err == nil && moved.Pod != device.Pod
	}, 2*time.Minute, 100*time.Millisecond)

	// A demo that was never complete has nothing of its user's.
	require.NoError(t, os.Remove(filepath.Join(filepath.Dir(s.world.Cluster.Kubeconfig()), "demo.json")))
	play.Acts = []func(context.Context) error{func(context.Context) error { return errPlayed }}
	out.Reset()
	require.ErrorIs(t, play.Run(t.Context(), &out), errPlayed)
	require.Equal(t, "Removed a demo whose start was interrupted.\n", out.String())
}

var errPlayed = errors.New("it is played again")

// requireFoundAgain requires that a demo that runs is shown instead of played, with
// what its user made in it, even where parts of it have ended.
func requireFoundAgain(t *testing.T, s *story, play show.Play) {
	t.Helper()
	_, err := s.world.Cluster.Kubectl(t.Context(), "create", "configmap", "of-a-user")
	require.NoError(t, err)
	play.Acts = []func(context.Context) error{func(context.Context) error { return errPlayed }}
	again := func() string {
		var out bytes.Buffer
		require.NoError(t, play.Run(t.Context(), &out))
		require.Contains(t, out.String(), s.runningDemo().Access())
		requirePage(t, s.runningDemo().Page)
		_, err := s.world.Cluster.Kubectl(t.Context(), "get", "configmap", "of-a-user")
		require.NoError(t, err)
		return out.String()
	}
	require.True(t, strings.HasPrefix(again(), "The demo runs already (Kubernetes "))

	require.NoError(t, s.world.Sidecar.Kill())
	require.NoError(t, s.world.Cluster.StopComponent(t.Context(), cluster.APIServer))
	healed := again()
	require.Contains(t, healed, "again, with all that is in it")
	require.Contains(t, healed, "Starting kwok-dra again ...")

	play.Command = "make demo-other"
	require.Contains(t, again(), "The demo of make demo runs already")
}

// requirePage requires that the page is where the last words say.
func requirePage(t *testing.T, url string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	require.Equal(t, http.StatusOK, response.StatusCode)
}

// exports are the lines with which all others work.
func exports(lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return !strings.HasPrefix(line, "export ") })
}

// read runs lines of the last words as a reader does, in a shell that knows
// nothing of the cluster.
func read(t *testing.T, lines []string) string {
	t.Helper()
	shell := exec.CommandContext(t.Context(), "sh", "-ec", strings.Join(lines, "\n"))
	shell.Dir = sidecar.Root()
	shell.Env = slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "KUBECONFIG=") })
	out, err := shell.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

func TestFree(t *testing.T) {
	device := &world.Break{Node: "h100-0", Device: "gpu-3", Pod: "training-0", Free: 12, Nodes: []string{"h100-0", "h100-1"}}
	require.Equal(t, "12 free GPUs of the same kind, on h100-0 or h100-1", freeDevicesText(device))
	require.Equal(t, "kubectl annotate node h100-0 dra.kwok.x-k8s.io/device-taints=gpu-3:gpu.nvidia.com/xid=79:NoExecute", device.Taint())
}
