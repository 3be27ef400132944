// Package view proves that kubectl logs and kubectl exec show what the containers of Pods on
// fake nodes have of their devices, through the API server and kwok.
package view

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// world is a cluster whose kwok shares a directory with kwok-dra.
type world struct {
	*harness.H
	directory string
}

// on is the world for a subtest.
func (w *world) on(t *testing.T) *world { return &world{w.On(t), w.directory} }

func newWorld(t *testing.T) *world {
	t.Helper()
	directory := t.TempDir()
	kwok := filepath.Join(t.TempDir(), "kwok.yaml")
	require.NoError(t, os.WriteFile(kwok, fmt.Appendf(nil, `
apiVersion: config.kwok.x-k8s.io/v1alpha1
kind: KwokctlConfiguration
componentsPatches:
- {name: kwok-controller, extraEnvs: [{name: PATH, value: %q}]}
`, filepath.Join(directory, "bin")+":"+os.Getenv("PATH")), 0o600))
	h := harness.New(t, cluster.Options{
		Config: append(harness.GeneralStages(t), kwok), EnableCRDs: []string{"Logs", "Exec"}, Audit: true,
	})
	rules := filepath.Join(sidecar.Root(), "kustomize", "container-view")
	h.Kubectl("", "apply", "-f", filepath.Join(rules, "role.yaml"), "-f", filepath.Join(rules, "role_binding.yaml"))
	return &world{h, directory}
}

// logs are what kubectl logs prints, or its error.
func (w *world) logs(namespace, pod, container string) (string, error) {
	return w.Cluster.Kubectl(w.Context(), "-n", namespace, "logs", pod, "-c", container)
}

// exec is what a program prints in a container, or its error.
func (w *world) exec(namespace, pod, container string, command ...string) (string, error) {
	return w.Cluster.Kubectl(w.Context(), append([]string{"-n", namespace, "exec", pod, "-c", container, "--"}, command...)...)
}

// shows waits until the view of a Pod's container is there.
func (w *world) shows(namespace, pod, container string) {
	w.Helper()
	w.Eventually(harness.Patience, func() string {
		_, logs := w.logs(namespace, pod, container)
		_, exec := w.exec(namespace, pod, container, "env")
		if err := errors.Join(logs, exec); err != nil {
			return err.Error()
		}
		return ""
	})
}

// prints runs a program in a container, which succeeds.
func (w *world) prints(want, namespace, pod string, command ...string) {
	w.Helper()
	output, err := w.exec(namespace, pod, "c", command...)
	require.NoError(w, err, "%v", command)
	require.Equal(w, want, output, "%v", command)
}

// folder has the files of a Pod.
func (w *world) folder(pod *corev1.Pod) string {
	return filepath.Join(w.directory, "pods", string(pod.UID))
}

// writes counts what kwok-dra has written of kwok's kinds.
func (w *world) writes() int { return len(w.Writes("logs")) + len(w.Writes("execs")) }

// h100 is a Pod with a GPU of the profile nvidia-h100, and an init container without one.
func h100(name string) *corev1.Pod {
	pod := harness.NewPod(name, "h100", harness.FromTemplate)
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "MODE", Value: "it's on"}}
	pod.Spec.InitContainers = []corev1.Container{{Name: "setup", Image: "busybox", Env: []corev1.EnvVar{{Name: "STEP", Value: "1"}}}}
	return pod
}

// uuid is that of the only GPU of a Pod.
func (w *world) uuid(pod string) string {
	w.Helper()
	result := w.ClaimOf("h100", pod).Status.Allocation.Devices.Results[0]
	device := harness.DeviceNamed(w, w.Pool("h100", result.Driver), result.Device)
	return *device.Attributes["uuid"].StringValue
}

// TestContainers: what containers see is in their logs and in what programs print there, as long as
// the Pod is there; without the option nothing is written.
func TestContainers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	profile, err := os.ReadFile(filepath.Join(sidecar.Root(), "kustomize", "profiles", "nvidia-h100", "template.yaml"))
	require.NoError(t, err)
	w.Configure("h100", string(profile))
	w.ConfigureGeneral(harness.Patience)
	process := w.Sidecar()
	w.CreateNode("h100", "h100")
	w.Label("h100", "dra.kwok.x-k8s.io/profile", "nvidia-h100")
	w.Namespace("h100", "gpu.nvidia.com")
	w.CreatePod("h100", h100("p"))
	pod := w.Running("h100", "p")
	require.Zero(t, w.writes())
	_, err = w.logs("h100", "p", "c")
	require.ErrorContains(t, err, "no logs found")
	require.NoError(t, process.Stop())

	w.own("q")
	process = w.Sidecar("--container-view", w.directory)
	w.shows("h100", "p", "c")
	w.printsOf("p")
	w.ownWins("q")

	before, written := w.writes(), w.stat(pod)
	require.NoError(t, process.Stop())
	process = w.Sidecar("--container-view", w.directory)
	w.CreatePod("h100", h100("r"))
	w.shows("h100", "r", "c") // so it has looked at the others
	require.True(t, os.SameFile(written, w.stat(pod)), "the folder is written anew")
	require.Equal(t, before+2, w.writes(), "two objects of the new Pod")
	w.printsOf("p")

	w.DeletePod("h100", "p", 1)
	w.Gone("h100", "p")
	w.Eventually(harness.Patience, func() string {
		if _, err := os.Stat(w.folder(pod)); err == nil {
			return "the folder is there"
		}
		return strings.TrimSpace(w.Kubectl("", "-n", "h100", "get", "logs,execs", "--field-selector", "metadata.name=p", "-o", "name"))
	})
	require.NoError(t, process.Stop())
}

// stat tells the folder of a Pod from one that is written anew.
func (w *world) stat(pod *corev1.Pod) os.FileInfo {
	w.Helper()
	info, err := os.Stat(filepath.Join(w.folder(pod), "pod.json"))
	require.NoError(w, err)
	return info
}

// printsOf: the programs that people run in containers.
func (w *world) printsOf(pod string) {
	w.Helper()
	uuid := w.uuid(pod)
	logs, err := w.logs("h100", pod, "c")
	require.NoError(w, err)
	require.Equal(w, "declare -x MODE=\"it's on\"\ndeclare -x NVIDIA_VISIBLE_DEVICES=\"void\"\n", logs)
	logs, err = w.logs("h100", pod, "setup")
	require.NoError(w, err)
	require.Equal(w, "declare -x STEP=\"1\"\n", logs)

	w.prints("MODE=it's on\nNVIDIA_VISIBLE_DEVICES=void\n", "h100", pod, "env")
	w.prints("it's on\n", "h100", pod, "printenv", "MODE")
	w.prints("it's on\n", "h100", pod, "sh", "-c", "echo $MODE")
	w.prints("GPU 0: NVIDIA H100 80GB HBM3 (UUID: "+uuid+")\n", "h100", pod, "nvidia-smi", "-L")
	table, err := w.exec("h100", pod, "c", "nvidia-smi")
	require.NoError(w, err)
	require.Contains(w, table, "| NVIDIA-SMI 580.105.8")
	require.Contains(w, table, "|   0  NVIDIA H100 80GB HBM3 ")
	require.Contains(w, table, "81559MiB")
	devices, err := w.exec("h100", pod, "c", "ls", "/dev")
	require.NoError(w, err)
	require.Regexp(w, `^nvidia-modeset\nnvidia-uvm\nnvidia-uvm-tools\nnvidia[0-7]\nnvidiactl\n$`, devices)

	_, err = w.exec("h100", pod, "c", "cat", "/etc/hostname")
	require.ErrorContains(w, err, "cat: /etc/hostname: No such file or directory")
	_, err = w.exec("h100", pod, "setup", "nvidia-smi")
	require.ErrorContains(w, err, "nvidia-smi: not in this container")
}

// own makes a Logs object of a user, and the Pod that it is for.
func (w *world) own(name string) {
	w.Helper()
	file := filepath.Join(w.TempDir(), "log")
	require.NoError(w, os.WriteFile(file, []byte("2026-07-20T12:00:00Z stdout F the user's\n"), 0o600))
	w.Kubectl(fmt.Sprintf(`{apiVersion: kwok.x-k8s.io/v1alpha1, kind: Logs, metadata: {name: %s, namespace: h100}, spec: {logs: [{containers: [c], logsFile: %s}]}}`, name, file), "apply", "-f", "-")
	w.CreatePod("h100", h100(name))
}

// ownWins: the user's object is left alone, and the other one is ours.
func (w *world) ownWins(name string) {
	w.Helper()
	w.shows("h100", name, "c")
	logs, err := w.logs("h100", name, "c")
	require.NoError(w, err)
	require.Equal(w, "the user's\n", logs)
	w.prints("MODE=it's on\nNVIDIA_VISIBLE_DEVICES=void\n", "h100", name, "env")
}
