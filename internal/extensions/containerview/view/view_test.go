package view

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/controller/shard"
	"github.com/kwok-dra/kwok-dra/internal/extensions/containerview"
	"github.com/kwok-dra/kwok-dra/internal/observe"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/internal/testing/apitest"
	"github.com/kwok-dra/kwok-dra/internal/testing/claimstest"
	"github.com/kwok-dra/kwok-dra/internal/testing/configtest"
	"github.com/kwok-dra/kwok-dra/internal/testing/runtest"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// world is a Viewer at work, in a bubble, on a server with the Pods and one with kwok's objects.
type world struct {
	*apitest.Server
	t         *testing.T
	directory string
	store     *config.Store
	owner     *shard.Owner
	kwok      *fake.FakeDynamicClient
	stop      func()

	mu    sync.Mutex
	calls []string
	// drivers are those of all nodes.
	drivers func() containerview.Drivers
	// refuse has calls of kwok's kinds fail.
	refuse func(verb, kind string) error
}

// drivers inject where a claim comes from.
type drivers struct{ more string }

func (d drivers) Injections(_ *corev1.Pod, claim *resourcev1.ResourceClaim, _ []*resourcev1.DeviceRequestAllocationResult) ([]containerview.Injection, error) {
	return []containerview.Injection{{ID: claim.Name, Edits: v1alpha1.Edits{Env: []string{"CLAIM=" + claim.Name + d.more}}}}, nil
}

func (drivers) Device(*resourcev1.DeviceRequestAllocationResult) *resourcev1.Device { return nil }

func newWorld(t *testing.T, objects ...runtime.Object) *world {
	t.Helper()
	w := &world{Server: apitest.New(objects...), t: t, directory: filepath.Join(t.TempDir(), "view"), store: config.NewStore("test")}
	w.refuse = func(string, string) error { return nil }
	w.drivers = func() containerview.Drivers { return drivers{} }
	w.kwok = fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		resources[logsKind]: "LogsList", resources[execKind]: "ExecList",
	})
	w.kwok.PrependReactor("*", "*", w.react)
	configtest.Replace(t, w.store, "")
	return w
}

// react applies objects without a look at their fields.
func (w *world) react(action clienttesting.Action) (bool, runtime.Object, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, action.GetVerb()+" "+action.GetResource().Resource)
	if err := w.refuse(action.GetVerb(), action.GetResource().Resource); err != nil {
		return true, nil, err
	}
	patch, ok := action.(clienttesting.PatchActionImpl)
	if !ok {
		return false, nil, nil
	}
	object, err := runtime.Decode(unstructured.UnstructuredJSONScheme, patch.GetPatch())
	require.NoError(w.t, err)
	if err = w.kwok.Tracker().Create(patch.Resource, object, patch.Namespace); apierrors.IsAlreadyExists(err) {
		err = w.kwok.Tracker().Update(patch.Resource, object, patch.Namespace)
	}
	return true, object, err
}

func (w *world) start(directory string) {
	w.t.Helper()
	managed := &lifecycle.ManagedNodes{}
	require.NoError(w.t, managed.Complete())
	caches := observe.New(w.Server, managed)
	viewer := New(Options{
		Client: w.kwok, Config: w.store, Caches: caches, Owner: w.owner, Directory: directory,
		Drivers: func(*config.Set, *corev1.Node) containerview.Drivers { return w.drivers() },
		Shared:  func() string { return "" },
	})
	w.stop = runtest.InOrder(runtest.QuietContext(w.t), w.t, caches.Run, func(ctx context.Context) { viewer.Run(ctx, 2) })
	synctest.Wait()
}

// took are the calls to kwok's kinds since the last time.
func (w *world) took() []string {
	time.Sleep(time.Millisecond)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	calls := w.calls
	w.calls = nil
	return calls
}

// env is the file of a Pod's container, or "".
func (w *world) env(uid string) string {
	text, err := os.ReadFile(filepath.Join(w.directory, "pods", uid, "c", "env"))
	if err != nil {
		return ""
	}
	return string(text)
}

var inBubble = runtest.InBubble

var (
	pod   = prepared("p", "a")
	claim = claimstest.Allocated("a", pod)
	// lists are what a start asks for, and applies are what a Pod takes.
	lists   = []string{"list execs", "list logs"}
	applies = []string{"patch logs", "patch execs"}
)

// TestView: a Pod has a view from when it is prepared until it goes; a restart writes nothing.
func TestView(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		waiting := claimstest.NewPod("p", "a")
		w := newWorld(t, claimstest.NewNode("n"), waiting, claim)
		w.start(w.directory)
		require.Empty(t, w.took())
		require.Empty(t, w.env("uid-of-p"))

		apitest.Edit(w.Server, "default", "p", func(p *corev1.Pod) { p.Status = pod.Status })
		calls := w.took()
		require.ElementsMatch(t, lists, calls[:2])
		require.Equal(t, applies, calls[2:])
		require.Equal(t, "CLAIM=a\n", w.env("uid-of-p"))

		apitest.Edit(w.Server, "default", "p", func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning })
		require.Empty(t, w.took(), "nothing that is shown has changed")
		w.stop()
		w.start(w.directory)
		require.ElementsMatch(t, lists, w.took())

		w.Remove(claim)
		apitest.Edit(w.Server, "default", "p", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
		require.Empty(t, w.took())
		require.Equal(t, "CLAIM=a\n", w.env("uid-of-p"), "as long as the Pod is there")
		w.Remove(pod)
		require.Empty(t, w.took(), "the garbage collector deletes the objects")
		require.NoDirExists(t, filepath.Join(w.directory, "pods", "uid-of-p"))
	})
}

// TestAsAtTheStart: what a driver would inject later reaches no container that runs.
func TestAsAtTheStart(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, claimstest.NewNode("n"), pod, claim)
		failed := false
		w.refuse = func(verb, kind string) error {
			if verb == "patch" && kind == "execs" && !failed {
				failed = true
				return apierrors.NewInternalError(errors.New("simulated"))
			}
			return nil
		}
		w.start(w.directory)
		time.Sleep(time.Second)
		require.Equal(t, append(applies, "patch execs"), w.took()[2:], "what has failed is tried again")
		w.stop()
		w.drivers = func() containerview.Drivers { return drivers{more: "-later"} }
		w.start(w.directory)
		require.ElementsMatch(t, lists, w.took())
		require.Equal(t, "CLAIM=a\n", w.env("uid-of-p"))
		w.stop()
		w.directory += "-other"
		w.start(w.directory)
		require.Equal(t, applies, w.took()[2:], "the objects name the directory")
		require.Equal(t, "CLAIM=a-later\n", w.env("uid-of-p"))
	})
}

// TestDriversNotKnown: what real drivers have returned is read from the folder of the node, which
// takes a while after a start.
func TestDriversNotKnown(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, claimstest.NewNode("n"), pod, claim)
		var known atomic.Bool
		w.drivers = func() containerview.Drivers {
			if known.Load() {
				return drivers{}
			}
			return nil
		}
		w.start(w.directory)
		require.ElementsMatch(t, lists, w.took())
		require.Empty(t, w.env("uid-of-p"))
		known.Store(true)
		time.Sleep(driversPollInterval)
		require.Equal(t, applies, w.took())
	})
}

// TestSameName: the next Pod of a name has a view of its own, also when the first has gone while
// nobody looked.
func TestSameName(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, claimstest.NewNode("n"), pod, claim)
		w.start(w.directory)
		w.took()
		w.stop()
		next := pod.DeepCopy()
		next.UID = "next"
		w.Remove(pod)
		w.Add(next)
		w.start(w.directory)
		require.Equal(t, applies, w.took()[2:])
		require.Empty(t, w.env("uid-of-p"))
		require.NotEmpty(t, w.env("next"))
		w.stop()
		w.Remove(next)
		w.start(w.directory)
		require.NoDirExists(t, filepath.Join(w.directory, "pods", "next"))
	})
}

// TestOff: without a directory nobody calls, and nothing is written. The directory can be in the
// configuration.
func TestOff(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, claimstest.NewNode("n"), pod, claim)
		w.start("")
		require.Empty(t, w.took())
		configtest.Replace(t, w.store, claimstest.Configuration("{containerView: "+w.directory+"}"))
		require.Equal(t, applies, w.took()[2:])
		require.NotEmpty(t, w.env("uid-of-p"))
		configtest.Replace(t, w.store, "")
		w.Remove(pod)
		require.Empty(t, w.took())
		require.NotEmpty(t, w.env("uid-of-p"), "nobody looks after it any more")
	})
}

// TestOthersObject: a user's own object stays, and is asked for once.
func TestOthersObject(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, claimstest.NewNode("n"), pod, claim)
		w.refuse = func(verb, kind string) error {
			if verb == "patch" && kind == "logs" {
				return apierrors.NewConflict(resources[logsKind].GroupResource(), "p", nil)
			}
			return nil
		}
		w.start(w.directory)
		require.Equal(t, applies, w.took()[2:])
		apitest.Edit(w.Server, "default", "p", func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning })
		time.Sleep(time.Hour)
		require.Empty(t, w.took())
		w.stop()
		w.start(w.directory)
		require.Equal(t, []string{"patch logs"}, w.took()[2:], "a restart tries it once")
	})
}

// TestNotServed: without kwok's kinds one list in a while is tried, however many Pods there are, and
// the files are there.
func TestNotServed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		objects := []runtime.Object{claimstest.NewNode("n"), claim}
		for _, name := range []string{"p", "q", "r", "s"} {
			objects = append(objects, prepared(name, "a"))
		}
		w := newWorld(t, objects...)
		served := false
		w.refuse = func(_, kind string) error {
			if served {
				return nil
			}
			return apierrors.NewNotFound(schema.GroupResource{Resource: kind}, "")
		}
		w.start(w.directory)
		require.Len(t, w.took(), 1)
		require.NotEmpty(t, w.env("uid-of-s"))
		time.Sleep(listRetryInterval)
		require.Len(t, w.took(), 1)
		w.mu.Lock()
		served = true
		w.mu.Unlock()
		time.Sleep(listRetryInterval)
		require.Len(t, w.took(), 2+2*4)
	})
}

// TestClaimComesLater: the cache of claims may be behind that of Pods.
func TestClaimComesLater(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, claimstest.NewNode("n"), pod)
		w.start(w.directory)
		require.ElementsMatch(t, lists, w.took())
		w.Add(claim)
		require.Equal(t, applies, w.took())
	})
}

// failing are drivers of which it is not known what they inject.
type failing struct{ drivers }

func (failing) Injections(*corev1.Pod, *resourcev1.ResourceClaim, []*resourcev1.DeviceRequestAllocationResult) ([]containerview.Injection, error) {
	return nil, errors.New("read CDI spec a.json: it is a FIFO, and must be a regular file")
}

// TestDriversMended: a driver that mends its files tells nobody so.
func TestDriversMended(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, claimstest.NewNode("n"), pod, claim)
		var mended atomic.Bool
		w.drivers = func() containerview.Drivers {
			if mended.Load() {
				return drivers{}
			}
			return failing{}
		}
		w.start(w.directory)
		require.ElementsMatch(t, lists, w.took())
		mended.Store(true)
		time.Sleep(planRetryInterval)
		require.Equal(t, applies, w.took())
	})
}

// TestForeignFolders: what is put among the folders of Pods holds up neither Pods nor changes of the
// configuration.
func TestForeignFolders(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, claimstest.NewNode("n"), pod, claim)
		for name, put := range map[string]func(mark string) error{
			"fifo": func(mark string) error { return syscall.Mkfifo(mark, 0o600) },
			"zero": func(mark string) error { return os.Symlink("/dev/zero", mark) },
			"size": func(mark string) error {
				return os.WriteFile(mark, []byte(`{"namespace": "a", "name": "b", "uid": "size", "size": 1000000000}`), 0o600)
			},
		} {
			folder := filepath.Join(w.directory, "pods", name)
			require.NoError(t, os.MkdirAll(folder, 0o755))
			require.NoError(t, put(filepath.Join(folder, "pod.json")))
		}
		changed := 0
		w.start("")
		w.store.OnChange(func() { changed++ })
		configtest.Replace(t, w.store, claimstest.Configuration("{containerView: "+w.directory+"}"))
		require.Equal(t, 1, changed)
		require.Equal(t, applies, w.took()[2:])
		require.NotEmpty(t, w.env("uid-of-p"))
		require.DirExists(t, filepath.Join(w.directory, "pods", "size"), "it is someone else's")
	})
}
