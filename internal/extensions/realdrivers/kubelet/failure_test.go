package kubelet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/claiminfo"
	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/root"
	"github.com/kwok-dra/kwok-dra/internal/testing/claimstest"
	"github.com/kwok-dra/kwok-dra/internal/testing/configtest"
)

const template = `apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: ResourcePoolTemplate
metadata: {name: t}
spec: {driver: template.example.com, devices: [{name: x}]}
`

// ending is a Pod that is prepared and ends, with its claim of a driver.
func ending(name, driver string) (*corev1.Pod, *resourcev1.ResourceClaim) {
	pod := claimstest.NewPod(name, name)
	pod.Spec.NodeName = "n"
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue}}
	pod.Finalizers, pod.DeletionTimestamp = []string{"a/b"}, &metav1.Time{Time: time.Now()}
	claim := claimstest.Allocated(name)
	claimstest.Allocate(claim, claimstest.Device(driver, "x"))
	return pod, claim
}

// told are the events since the last time.
func (w *world) told() (events []string) {
	synctest.Wait()
	for {
		select {
		case event := <-w.events.Events:
			events = append(events, event)
		default:
			return events
		}
	}
}

// requireWaits checks that a Pod of a real driver waits for a node that cannot serve it, and says why,
// and that one of templates' drivers does not.
func (w *world) requireWaits(want string) {
	w.t.Helper()
	hasTemplate := w.store.Current().HasDriver
	driverFor := func(name string) plan.Driver {
		return w.kubelets.Driver(claimstest.NewPod(name, name), claimstest.NewNode("n"), hasTemplate)
	}
	answer, err := driverFor("template").Unprepare(nil)
	require.NoError(w.t, err)
	require.Equal(w.t, plan.Answered, answer)
	_, err = driverFor("real").Unprepare(nil)
	require.ErrorContains(w.t, err, want)
	_, err = driverFor("real").Registered("real.example.com")
	require.ErrorContains(w.t, err, "DRA driver real.example.com is not registered: the kubelet of node n cannot serve real drivers: ")
	require.ErrorContains(w.t, err, want)
	require.ErrorAs(w.t, err, new(*plan.Failure), "which the Pod has an event of")
}

// newEndingWorld has a Pod of a template's driver and one of a real driver that end.
func newEndingWorld(t *testing.T) *world {
	t.Helper()
	pod, claim := ending("template", "template.example.com")
	other, otherClaim := ending("real", "real.example.com")
	return newWorld(t, claimstest.NewNode("n"), pod, claim, other, otherClaim)
}

// TestUnusableDirectory: Pods of templates' drivers need no directory. Those of real drivers say what is
// wrong with it, and the Node does not, which all nodes would do.
func TestUnusableDirectory(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newEndingWorld(t)
		file := filepath.Join(w.directory, "file")
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		w.start("")
		configtest.Replace(t, w.store, template+"---\n"+claimstest.Configuration("{pluginsDir: "+filepath.Join(file, "d")+"}"))
		synctest.Wait()
		w.requireWaits("make plugins directory: mkdir " + file + ": not a directory: choose one that kwok-dra may write to")
		require.Empty(t, w.told())
		require.NoError(t, os.Remove(file))
		time.Sleep(startRetryInterval)
		synctest.Wait()
		require.NotNil(t, w.kubelets.runningNode("n"))
		require.Empty(t, w.kubelets.failures)
		require.Empty(t, w.told())
	})
}

// TestUnusableFolder: a node whose files cannot be used has no kubelet until they are mended, and says
// so. It goes on by itself then.
func TestUnusableFolder(t *testing.T) {
	for name, test := range map[string]struct {
		put  func(folder string) error
		want string
	}{
		"text": {func(folder string) error {
			return os.WriteFile(filepath.Join(folder, claiminfo.File), []byte("x"), 0o600)
		}, "/dra_manager_state: invalid character"},
		"fifo": {func(folder string) error { return syscall.Mkfifo(filepath.Join(folder, claiminfo.File), 0o600) }, "dra_manager_state: it is a FIFO"},
		"zero": {func(folder string) error { return os.Symlink("/dev/zero", filepath.Join(folder, claiminfo.File)) }, "dra_manager_state: it is a symbolic link"},
		"null": {func(folder string) error {
			return os.WriteFile(filepath.Join(folder, claiminfo.File), nullEntry, 0o600)
		}, "ClaimInfoStateList[0] is null"},
		"registry": {func(folder string) error { return os.WriteFile(filepath.Join(folder, "plugins_registry"), nil, 0o600) }, "plugins_registry: not a directory: make room on the disk"},
		"owner":    {func(folder string) error { return syscall.Mkfifo(filepath.Join(folder, "node"), 0o600) }, "node: it is a FIFO"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newEndingWorld(t)
				configtest.Replace(t, w.store, template)
				folder := filepath.Join(w.directory, "n")
				require.NoError(t, os.Mkdir(folder, 0o755))
				require.NoError(t, test.put(folder))
				w.start(w.directory)
				require.Nil(t, w.kubelets.runningNode("n"))
				w.requireWaits(test.want)
				events := w.told()
				require.Len(t, events, 1)
				require.Contains(t, events[0], "Warning KubeletNotStarted ")
				require.Contains(t, events[0], test.want)
				time.Sleep(time.Hour)
				require.Empty(t, w.told())
				require.NoError(t, os.RemoveAll(folder))
				time.Sleep(startRetryInterval)
				synctest.Wait()
				require.NotNil(t, w.kubelets.runningNode("n"))
			})
		})
	}
}

var nullEntry = []byte(`{"Data":"{\"kind\":\"DRACheckpoint\",\"apiVersion\":\"checkpoint.dra.kubelet.k8s.io/v1\",\"ClaimInfoStateList\":[null]}","Checksum":1737263548}`)

// TestDamagedFolders: the folder of one node, whatever is in it, holds up neither a change of the
// configuration nor another node.
func TestDamagedFolders(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		nodes := []*corev1.Node{claimstest.NewNode("n"), claimstest.NewNode("o"), claimstest.NewNode("p"), claimstest.NewNode("q")}
		w := newWorld(t, nodes[0], nodes[1], nodes[2], nodes[3])
		for _, name := range []string{"n", "o", "p"} {
			made, err := root.Directory(w.directory).Make(name, types.UID(name))
			require.NoError(t, err)
			file := filepath.Join(made.Path, "node")
			require.NoError(t, os.Remove(file))
			require.NoError(t, syscall.Mkfifo(file, 0o600))
		}
		w.start(w.directory)
		require.NotNil(t, w.kubelets.runningNode("q"))
		changed := false
		w.store.OnChange(func() { changed = true })
		configtest.Replace(t, w.store, template)
		require.True(t, changed)
	})
}

// TestCallsOfPodsThatAreGone: a call that has failed is forgotten with the Pod, if nothing of that is left.
func TestCallsOfPodsThatAreGone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, claimstest.NewNode("n"))
		w.start(w.directory)
		n := w.kubelets.runningNode("n")
		n.calls.beginCall("gone", &call{}, func(context.Context) error { return fmt.Errorf("ask: %w", errBusy) }, func() {})
		synctest.Wait()
		require.False(t, n.calls.isEmpty())
		time.Sleep(socketScanInterval)
		synctest.Wait()
		require.True(t, n.calls.isEmpty())
	})
}
