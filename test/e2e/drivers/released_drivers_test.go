package drivers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// program is a driver of others, as a command.
type program struct {
	binary, driver string
	// arguments are those for a node's folder and an instance of a rolling update.
	arguments func(node, root, instance string) []string
	// rolling says that two instances can be there at a time.
	rolling bool
	// builtIn says that the driver has the kubelet's paths built in, and is a plugin of a container
	// runtime.
	builtIn bool
}

// TestOthers: the drivers of Kubernetes' own tests and of its example run unmodified, as processes on
// fake nodes.
func TestOthers(t *testing.T) {
	t.Parallel()
	s := newScene(t, harness.AllFeatures(cluster.Options{Config: harness.GeneralStages(t)}))
	s.ConfigureGeneral(retry)
	first := s.Sidecar("--plugins-dir", s.plugins, "-v=2")
	binaries := t.TempDir()
	require.NoError(t, sidecar.Build(filepath.Join(sidecar.Root(), "test", "drivers", "others"), binaries, "tool", "./nri-runtime"))
	example := func(profile string) program {
		return program{
			binary: "dra-example-kubeletplugin", driver: profile + ".example.com", rolling: true,
			arguments: func(node, root, instance string) []string {
				return []string{
					"--kubeconfig", s.Cluster.Kubeconfig(), "--node-name", node, "--device-profile", profile, "--pod-uid", instance,
					"--kubelet-registrar-directory-path", filepath.Join(root, "plugins_registry"),
					"--kubelet-plugins-directory-path", filepath.Join(root, "plugins"), "--cdi-root", filepath.Join(root, "cdi"),
				}
			},
		}
	}
	var stories []*story
	for node, p := range map[string]program{
		"gpu": example("gpu"),
		"net": example("net"),
		"cpu": example("cpu"),
		"kubernetes": {binary: "test-driver", driver: "test-driver.cdi.k8s.io", arguments: func(node, root, _ string) []string {
			return []string{
				"--kubeconfig", s.Cluster.Kubeconfig(), "kubelet-plugin", "--node-name", node, "--datadir", filepath.Join(root, "plugins"),
				"--plugin-registration-path", filepath.Join(root, "plugins_registry"), "--cdi-dir", filepath.Join(root, "cdi"),
			}
		}},
		"processor": {binary: "dracpu", driver: "dra.cpu", builtIn: true, arguments: func(node, _, _ string) []string {
			return []string{
				"--kubeconfig", s.Cluster.Kubeconfig(), "--hostname-override", node, "--cpu-device-mode", "individual",
				"--bind-address", "127.0.0.1:0",
			}
		}},
	} {
		stories = append(stories, &story{scene: s, test: t, node: node, program: p, binaries: binaries})
	}
	tell := func(name string, part func(*story)) {
		t.Run(name, func(t *testing.T) {
			for _, told := range stories {
				t.Run(told.node, func(t *testing.T) {
					t.Parallel()
					if told.builtIn {
						skipBuiltIn(t)
					}
					on := *told
					on.scene = s.on(t)
					part(&on)
					told.process = on.process
				})
			}
		})
	}
	tell("driver", (*story).restartDriver)
	require.NoError(t, first.Kill())
	s.Sidecar("--plugins-dir", s.plugins, "-v=2")
	tell("kwok-dra", (*story).afterRestart)
}

// story is what becomes of Pods on a node with a driver.
type story struct {
	*scene
	// test is the one that the driver ends with.
	test *testing.T
	node string
	program
	binaries string
	process  *exec.Cmd
}

// run starts the driver.
func (s *story) run(instance string) {
	root := filepath.Join(s.plugins, s.node)
	// The volumes of its DaemonSet would make it.
	require.NoError(s, os.MkdirAll(filepath.Join(root, "plugins", s.driver), 0o750))
	s.process = exec.Command(filepath.Join(s.binaries, s.binary), s.arguments(s.node, root, instance)...)
	if s.builtIn {
		s.process = inNamespace(root, s.process.Args)
		s.process.Env = append(os.Environ(), "HOST_ROOT="+hostOf(root))
	}
	s.start(s.process)
}

// start starts a process, which ends with the test.
func (s *story) start(command *exec.Cmd) {
	log, err := os.CreateTemp(s.test.TempDir(), "driver")
	require.NoError(s, err)
	command.Stdout, command.Stderr = log, log
	command.Env = append(command.Environ(), "NODE_NAME="+s.node) // which the example's driver injects
	require.NoError(s, command.Start())
	s.test.Cleanup(func() {
		end(command, syscall.SIGKILL)
		if s.test.Failed() {
			content, err := os.ReadFile(log.Name())
			s.test.Logf("%s for node %s: %v\n%s", filepath.Base(command.Path), s.node, err, content[max(0, len(content)-4000):])
		}
		require.NoError(s.test, log.Close())
	})
}

// end ends a process, unless it has ended.
func end(command *exec.Cmd, signal syscall.Signal) {
	if command.ProcessState == nil {
		_ = command.Process.Signal(signal) // it may have ended by itself
		_ = command.Wait()                 // which says that it was killed
	}
}

// slices are the names of the driver's slices, when there are any.
func (s *story) slices() (names []string) {
	s.Helper()
	s.Eventually(harness.Patience, func() string {
		names = nil
		for _, slice := range s.SlicesOf(s.node) {
			if slice.Spec.Driver == s.driver {
				names = append(names, slice.Name)
			}
		}
		if len(names) == 0 {
			return fmt.Sprintf("driver %s has no slices", s.driver)
		}
		return ""
	})
	return names
}

// restartDriver has a driver crash, and be replaced by a newer one.
func (s *story) restartDriver() {
	s.newNodeOf(s.node, s.driver)
	if s.builtIn {
		s.makeCPUs()
		s.startRuntime()
	}
	s.run("one")
	published := s.slices()

	s.CreatePod(s.node, harness.NewPod("pod", s.node, harness.FromTemplate))
	s.Running(s.node, "pod")
	s.sees("pod")
	s.answersAsFake("pod")

	s.CreateClaim(s.node, "shared", harness.ClaimSpec(s.node))
	for _, name := range []string{"first", "second"} {
		s.CreatePod(s.node, harness.NewPod(name, s.node, "shared"))
		s.Running(s.node, name)
	}

	end(s.process, syscall.SIGKILL)
	s.CreatePod(s.node, harness.NewPod("late", s.node, harness.FromTemplate))
	s.FailedPrepare(s.node, "late")
	s.asksWhy("late")
	s.run("one")
	s.Running(s.node, "late")
	require.Equal(s, published, s.slices(), "a driver that comes back at once keeps its slices")
	if !s.rolling {
		return
	}
	older := s.process
	s.run("two")
	end(older, syscall.SIGTERM)
	s.DeletePod(s.node, "pod", 1)
	s.Gone(s.node, "pod")
	s.CreatePod(s.node, harness.NewPod("newer", s.node, harness.FromTemplate))
	s.Running(s.node, "newer")
	require.Equal(s, published, s.slices(), "a rolling update keeps the slices")
}

// afterRestart ends what was begun before a restart of kwok-dra.
func (s *story) afterRestart() {
	s.CreatePod(s.node, harness.NewPod("third", s.node, "shared"))
	s.Running(s.node, "third")
	for _, pod := range s.podsOf(s.node) {
		require.Equal(s, corev1.PodRunning, s.Pod(s.node, pod).Status.Phase, "of before the restart")
		s.DeletePod(s.node, pod, 1)
	}
	for _, pod := range s.podsOf(s.node) {
		s.Gone(s.node, pod)
	}
	s.Eventually(harness.Patience, func() string {
		if claim := s.Claim(s.node, "shared"); claim.Status.Allocation != nil {
			return "the shared claim is still allocated"
		}
		return ""
	})
	end(s.process, syscall.SIGTERM)
	s.Eventually(harness.Patience, func() string {
		if slices := s.SlicesOf(s.node); len(slices) > 0 {
			return fmt.Sprintf("%d slices are left, though the driver has gone", len(slices))
		}
		return ""
	})
}

func (s *story) podsOf(namespace string) (names []string) {
	s.Helper()
	pods, err := s.Client.CoreV1().Pods(namespace).List(s.Context(), metav1.ListOptions{})
	require.NoError(s, err)
	for i := range pods.Items {
		names = append(names, pods.Items[i].Name)
	}
	return names
}
