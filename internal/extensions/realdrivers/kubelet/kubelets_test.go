package kubelet

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/root"
	"github.com/kwok-dra/kwok-dra/internal/observe"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/internal/testing/apitest"
	"github.com/kwok-dra/kwok-dra/internal/testing/claimstest"
	"github.com/kwok-dra/kwok-dra/internal/testing/configtest"
	"github.com/kwok-dra/kwok-dra/internal/testing/runtest"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is Kubelets at work on a server, in a bubble. No plugin registers: connections to one are
// outside of every bubble.
type world struct {
	*apitest.Server
	t         *testing.T
	directory string
	store     *config.Store
	kubelets  *Kubelets
	events    *record.FakeRecorder
	stop      func()
}

func newWorld(t *testing.T, objects ...runtime.Object) *world {
	t.Helper()
	directory, err := os.MkdirTemp("", "k") //nolint:usetesting // its paths are too long for sockets
	require.NoError(t, err)
	w := &world{Server: apitest.New(objects...), t: t, directory: directory, store: config.NewStore("test"), events: record.NewFakeRecorder(100)}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(directory)) })
	w.Name = operation
	configtest.Replace(t, w.store, "")
	return w
}

// operation names the calls that delete slices: "wipe spec.nodeName=n".
func operation(action clienttesting.Action) string {
	if wipe, ok := action.(clienttesting.DeleteCollectionActionImpl); ok {
		return "wipe " + wipe.ListRestrictions.Fields.String()
	}
	return ""
}

// start starts Kubelets, as a restart of the sidecar does after stop.
func (w *world) start(directory string) {
	w.t.Helper()
	managed := &lifecycle.ManagedNodes{}
	require.NoError(w.t, managed.Complete())
	caches := observe.New(w.Server, managed)
	kubelets := New(Options{Client: w.Server, Config: w.store, Caches: caches, Recorder: w.events, Directory: directory, WipeDelay: WipeDelay})
	w.kubelets = kubelets
	w.stop = runtest.InOrder(runtest.QuietContext(w.t), w.t, caches.Run, func(ctx context.Context) { kubelets.Run(ctx, 2) })
	synctest.Wait()
}

// took are the wipes since the last time.
func (w *world) took() []string {
	synctest.Wait()
	return w.TakeCalls(func(string) bool { return true })
}

// slices are the drivers of the slices that there are.
func (w *world) slices() (drivers []string) {
	w.t.Helper()
	list, err := w.ResourceV1().ResourceSlices().List(w.t.Context(), metav1.ListOptions{})
	require.NoError(w.t, err)
	for i := range list.Items {
		drivers = append(drivers, list.Items[i].Spec.Driver)
	}
	return drivers
}

// folder is a path below the folder of a node.
func (w *world) folder(node string) string {
	return filepath.Join(w.directory, node, "plugins_registry")
}

func slice(driver string, ours bool) *resourcev1.ResourceSlice {
	made := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: driver}, Spec: resourcev1.ResourceSliceSpec{Driver: driver, NodeName: new("n")}}
	if ours {
		made.Labels = map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedByValue}
	}
	return made
}

var inBubble = runtest.InBubble

// TestFolders: the folder of a fake node belongs to its name. It outlives a Node that is registered once
// more, and goes when there has been none for a while.
func TestFolders(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, claimstest.NewNode("n"), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "real", UID: "real"}})
		w.start(w.directory)
		require.DirExists(t, w.folder("n"))
		require.NoDirExists(t, w.folder("real"))
		file := filepath.Join(w.folder("n"), "file")
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		before := w.kubelets.runningNode("n")

		w.Remove(claimstest.NewNode("n"))
		time.Sleep(WipeDelay - time.Second)
		synctest.Wait()
		again := claimstest.NewNode("n")
		again.UID = "another"
		w.Add(again)
		synctest.Wait()
		require.FileExists(t, file)
		require.Same(t, before, w.kubelets.runningNode("n"), "plugins stay connected")
		found, err := root.Directory(w.directory).Find("n")
		require.NoError(t, err)
		require.Equal(t, again.UID, found.UID)

		w.Remove(again)
		time.Sleep(WipeDelay - time.Second)
		synctest.Wait()
		require.FileExists(t, file)
		time.Sleep(time.Second)
		synctest.Wait()
		require.NoDirExists(t, filepath.Join(w.directory, "n"))
		require.Nil(t, w.kubelets.runningNode("n"))
		require.Empty(t, w.kubelets.absentSince)
	})
}

// TestFoldersInUse: a folder in which a plugin listens stays until that ends.
func TestFoldersInUse(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, claimstest.NewNode("n"))
		w.start(w.directory)
		w.stop()
		w.Remove(claimstest.NewNode("n"))
		listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(w.folder("n"), "d.sock"))
		require.NoError(t, err)
		w.start(w.directory)
		time.Sleep(10 * WipeDelay)
		synctest.Wait()
		require.DirExists(t, w.folder("n"))
		require.NoError(t, listener.Close())
		time.Sleep(WipeDelay)
		synctest.Wait()
		require.NoDirExists(t, w.folder("n"))
	})
}

// TestFoldersOfOthers: the folder of a node that is no fake one any more stays, and nobody stands in for
// its kubelet.
func TestFoldersOfOthers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, claimstest.NewNode("n"))
		w.start(w.directory)
		apitest.Edit(w.Server, "", "n", func(node *corev1.Node) { node.Annotations, node.Labels = nil, nil })
		synctest.Wait()
		require.Nil(t, w.kubelets.runningNode("n"))
		time.Sleep(time.Hour)
		synctest.Wait()
		require.DirExists(t, w.folder("n"))
	})
}

// TestFoldersAfterRestart: folders of nodes that have gone meanwhile are removed, and what kwok-dra
// has not made stays.
func TestFoldersAfterRestart(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, claimstest.NewNode("n"), claimstest.NewNode("m"))
		w.start(w.directory)
		w.stop()
		foreign := filepath.Join(w.directory, "foreign")
		require.NoError(t, os.Mkdir(foreign, 0o755))
		file := filepath.Join(w.folder("m"), "file")
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		w.Remove(claimstest.NewNode("n"))

		w.start(w.directory)
		require.DirExists(t, w.folder("n"))
		time.Sleep(WipeDelay)
		synctest.Wait()
		require.NoDirExists(t, w.folder("n"))
		require.FileExists(t, file)
		require.DirExists(t, foreign)
	})
}

// TestPluginsDir: the directory can be in the configuration, and can go from there.
func TestPluginsDir(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, claimstest.NewNode("n"))
		w.start("")
		require.NoDirExists(t, w.folder("n"))
		configtest.Replace(t, w.store, claimstest.Configuration("{pluginsDir: "+w.directory+"}"))
		synctest.Wait()
		require.DirExists(t, w.folder("n"))
		configtest.Replace(t, w.store, "")
		synctest.Wait()
		w.Remove(claimstest.NewNode("n"))
		synctest.Wait()
		require.DirExists(t, w.folder("n"), "nobody looks after it any more")
	})
}

// TestLeftSlices: what drivers have left that do not come back within the delay is deleted, and no
// template's slice.
func TestLeftSlices(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, claimstest.NewNode("n"), slice("left", false), slice("ours", true))
		w.start(w.directory)
		time.Sleep(WipeDelay - time.Millisecond)
		require.Empty(t, w.took())
		time.Sleep(time.Millisecond)
		require.Equal(t, []string{"wipe spec.driver=left,spec.nodeName=n"}, w.took())
		require.Equal(t, []string{"ours"}, w.slices())
		time.Sleep(time.Hour)
		require.Empty(t, w.took())
	})
}

// TestWipeAgain: slices are deleted when the API server lets them be.
func TestWipeAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, claimstest.NewNode("n"), slice("left", false))
		refusals := 2
		w.Refuse(func(string) error {
			if refusals--; refusals >= 0 {
				return errors.New("overloaded")
			}
			return nil
		})
		w.start(w.directory)
		time.Sleep(WipeDelay + time.Minute)
		require.Len(t, w.took(), 3)
		require.Empty(t, w.slices())
	})
}

// TestStages: while plugins are gone by what Stages say, slices are deleted as often as drivers make
// them; and all once when a kubelet restarts.
func TestStages(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, claimstest.NewNode("n"), slice("ours", true))
		w.start(w.directory)
		condition := func(kind, reason string, status corev1.ConditionStatus) {
			apitest.Edit(w.Server, "", "n", func(node *corev1.Node) {
				node.Status.Conditions = []corev1.NodeCondition{{
					Type: corev1.NodeConditionType(kind), Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(time.Now()),
				}}
			})
			synctest.Wait()
		}
		w.Add(slice("d", false))
		condition(v1alpha1.PluginRegistered, v1alpha1.PluginCrashed, corev1.ConditionUnknown)
		require.Empty(t, w.took())
		condition(v1alpha1.PluginRegistered, v1alpha1.PluginCrashed, corev1.ConditionFalse)
		require.Equal(t, []string{"wipe spec.nodeName=n"}, w.took())
		w.Add(slice("d", false))
		time.Sleep(wipeInterval)
		synctest.Wait()
		require.Equal(t, []string{"ours"}, w.slices())
		condition(v1alpha1.PluginRegistered, "PluginRegistered", corev1.ConditionTrue)
		w.took()
		w.Add(slice("d", false))
		time.Sleep(time.Hour)
		require.Empty(t, w.took())
	})
}

// TestFlappingStages: however often Stages say that plugins are gone, their slices are deleted as often as
// for the first time.
func TestFlappingStages(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, claimstest.NewNode("n"))
		w.start(w.directory)
		for i := range 20 {
			apitest.Edit(w.Server, "", "n", func(node *corev1.Node) {
				status := corev1.ConditionTrue
				if i%2 == 1 {
					status = corev1.ConditionFalse
				}
				node.Status.Conditions = []corev1.NodeCondition{{Type: v1alpha1.PluginRegistered, Status: status}}
			})
			time.Sleep(time.Second)
			synctest.Wait()
		}
		require.LessOrEqual(t, len(w.took()), 20/5+1)
		time.Sleep(time.Minute)
		require.Len(t, w.took(), 12, "one each 5 s, and not one for each time")
	})
}

// TestRestartOfKubelet: a restart by Stages deletes the slices of all real drivers once.
func TestRestartOfKubelet(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		node := claimstest.NewNode("n")
		restarted := func(node *corev1.Node) {
			node.Status.Conditions = []corev1.NodeCondition{{Type: v1alpha1.KubeletRestarted, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Now())}}
		}
		restarted(node)
		w := newWorld(t, node)
		w.start(w.directory)
		require.Empty(t, w.took(), "it was before")
		time.Sleep(time.Minute)
		w.Add(slice("d", false))
		apitest.Edit(w.Server, "", "n", restarted)
		require.Equal(t, []string{"wipe spec.nodeName=n"}, w.took())
		require.Empty(t, w.slices())
		time.Sleep(time.Hour)
		require.Empty(t, w.took())
	})
}
