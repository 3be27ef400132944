package classes

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/controller/installation"
	"github.com/kwok-dra/kwok-dra/internal/controller/shard"
	"github.com/kwok-dra/kwok-dra/internal/extensions/karpenter/adapters"
	"github.com/kwok-dra/kwok-dra/internal/testing/apitest"
	"github.com/kwok-dra/kwok-dra/internal/testing/runtest"
)

var mapName = types.NamespacedName{Namespace: "karpenter", Name: "dra-kwok-configmap"}

const mapping = `
driver: gpu.example.com
mappings:
- name: a
  nodeSelector: {matchLabels: {a: b}}
  resourceSlice: {devices: [{name: gpu, count: 1, attributes: {}}]}
`

// world is a Keeper at work beside the ConfigMap, in a bubble.
type world struct {
	*apitest.Server
	t        *testing.T
	recorder *record.FakeRecorder
	// keeper is the last one that was started.
	keeper *Keeper
	// drops has the server drop names of extended resources.
	drops bool
	stop  func()
}

func newWorld(t *testing.T, text string, objects ...runtime.Object) *world {
	t.Helper()
	w := &world{Server: apitest.New(objects...), t: t, recorder: record.NewFakeRecorder(100)}
	w.Name, w.Admit = write, w.admit
	if text != "" {
		w.configure(text)
	}
	w.start(mapName, "a/kwok-dra")
	return w
}

// start starts a Keeper of an installation, beside others if there are some.
func (w *world) start(mapName types.NamespacedName, as installation.ID) {
	t := w.t
	t.Helper()
	store := config.NewStore(config.ConfigMapCarrier(mapName))
	keeper := New(w, store, shard.New(shard.Options{Mode: shard.None, Installation: as}), w.recorder)
	w.keeper = keeper
	configMap := config.NewAdaptedConfigMap(w, mapName, store, w.recorder, adapters.DRAKwokConfigMap)
	stop := runtest.UntilEnd(runtest.QuietContext(t), t, configMap.Run, keeper.Run)
	w.stop = func() {
		stop()
		synctest.Wait()
	}
	synctest.Wait()
}

// write names the writes of classes by their verbs.
func write(action clienttesting.Action) string {
	verb := action.GetVerb()
	if action.GetResource().Resource != "deviceclasses" || verb == "list" || verb == "get" {
		return ""
	}
	return verb
}

func (w *world) admit(object runtime.Object) error {
	if class, ok := object.(*resourcev1.DeviceClass); ok && w.drops {
		class.Spec.ExtendedResourceName = nil
	}
	return nil
}

func (w *world) configure(text string) {
	w.t.Helper()
	w.configureAs(mapName, text)
}

func (w *world) configureAs(mapName types.NamespacedName, text string) {
	w.t.Helper()
	configMaps := w.CoreV1().ConfigMaps(mapName.Namespace)
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: mapName.Name, UID: "uid"}, Data: map[string]string{"config.yaml": text}}
	_, err := configMaps.Create(w.t.Context(), configMap, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = configMaps.Update(w.t.Context(), configMap, metav1.UpdateOptions{})
	}
	require.NoError(w.t, err)
	synctest.Wait()
}

// wrote checks the writes since the last call, and that time brings no more.
func (w *world) wrote(verbs ...string) {
	w.t.Helper()
	synctest.Wait()
	time.Sleep(10 * time.Minute)
	require.Equal(w.t, verbs, w.takeWrites())
}

func (w *world) takeWrites() []string {
	return w.TakeCalls(func(string) bool { return true })
}

func (w *world) events() []string {
	var events []string
	for len(w.recorder.Events) > 0 {
		events = append(events, <-w.recorder.Events)
	}
	return events
}

// edit changes the class in someone else's place.
func (w *world) edit(change func(*resourcev1.DeviceClass)) {
	apitest.Edit(w.Server, "", "gpu.example.com", change)
	synctest.Wait()
}

// remove deletes it so.
func (w *world) remove() {
	w.Remove(&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu.example.com"}})
	synctest.Wait()
}

var inBubble = runtest.InBubble

// TestKeeper follows a class from its coming to its going.
func TestKeeper(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, "")
		w.wrote()
		w.configure(mapping)
		w.wrote("create")
		w.edit(func(class *resourcev1.DeviceClass) { class.Spec.Selectors[0].CEL.Expression = "false" })
		w.wrote("update")
		w.remove()
		w.wrote("create")
		w.configure(strings.Replace(mapping, "gpu.", "fpga.", 1))
		w.wrote("delete", "create")
		require.NoError(t, w.CoreV1().ConfigMaps(mapName.Namespace).Delete(t.Context(), mapName.Name, metav1.DeleteOptions{}))
		w.wrote("delete")
		require.Empty(t, w.events())
	})
}

// TestKeeperWaits: as long as it is not known what there should be, nothing goes.
func TestKeeperWaits(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, "driver: [", classOf("true", managedBy, "kwok-dra"))
		w.wrote()
		w.configure("")
		w.wrote("delete")
	})
}

// TestKeeperLeavesOthers: a class of someone else is told of, and made when it has
// gone.
func TestKeeperLeavesOthers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, mapping, classOf("false"))
		w.wrote()
		events := w.events()
		require.Len(t, events, 1)
		require.Contains(t, events[0], "Warning DeviceClassNotManaged DeviceClass gpu.example.com was not created by kwok-dra")
		w.edit(func(class *resourcev1.DeviceClass) { class.Labels = map[string]string{"a": "b"} })
		w.wrote()
		require.Empty(t, w.events(), "once is enough")
		w.configure("")
		w.wrote()
		w.configure(mapping)
		require.Len(t, w.events(), 1)
		w.remove()
		w.wrote("create")
	})
}

// TestKeeperAsksAgain: where the name of the extended resource is dropped, it is
// tried again now and then, until it is kept.
func TestKeeperAsksAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, "")
		w.drops = true
		w.configure(mapping)
		events := w.events()
		require.Len(t, events, 1)
		require.Contains(t, events[0], "Warning FieldsDropped the API server drops extendedResourceName gpu.example.com/device of DeviceClass gpu.example.com")
		time.Sleep(10 * droppedFieldRetryInterval)
		synctest.Wait()
		require.InDelta(t, 11, len(w.takeWrites()), 2)
		w.Mu.Lock()
		w.drops = false
		w.Mu.Unlock()
		require.Empty(t, w.events())
		w.wrote("update")
		class, err := w.ResourceV1().DeviceClasses().Get(t.Context(), "gpu.example.com", metav1.GetOptions{})
		require.NoError(t, err)
		require.NotNil(t, class.Spec.ExtendedResourceName)
	})
}

// TestKeeperTriesAgain: what keeps failing is told.
func TestKeeperTriesAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, "")
		w.Refuse(func(string) error { return errors.New("down") })
		w.configure(mapping)
		time.Sleep(time.Hour)
		synctest.Wait()
		events := w.events()
		require.Len(t, events, 1)
		require.Contains(t, events[0], "Warning DeviceClassFailed create DeviceClass gpu.example.com: down")
		w.Refuse(nil)
		w.takeWrites()
		w.wrote("create")
	})
}

// elsewhere is the ConfigMap of a second installation.
var elsewhere = types.NamespacedName{Namespace: "other", Name: "dra-kwok-configmap"}

// TestClassOfAnotherInstallation: two installations that want different classes of one
// name, or of which one wants none, leave each other's alone. When the owner gives the
// class up, or its record goes, the other one makes its own.
func TestClassOfAnotherInstallation(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, mapping)
		w.wrote("create")
		upper := strings.Replace(mapping, "gpu.", "GPU.", 1) // the name of the class is the same
		w.configureAs(elsewhere, upper)
		w.start(elsewhere, "b/kwok-dra")
		w.wrote()
		events := w.events()
		require.Len(t, events, 1)
		require.Contains(t, events[0], `Warning DeviceClassNotManaged DeviceClass gpu.example.com belongs to installation "a/kwok-dra" of kwok-dra, and installation "b/kwok-dra" leaves it alone`)
		w.configureAs(elsewhere, "")
		w.wrote()
		w.configureAs(elsewhere, upper)
		require.Len(t, w.events(), 1)
		w.configure("")
		w.wrote("delete", "create")
		require.Equal(t, "b/kwok-dra", w.recordedTo())
		w.configure(mapping)
		w.wrote()
		require.Len(t, w.events(), 1)
	})
}

func (w *world) recordedTo() string {
	w.t.Helper()
	class, err := w.ResourceV1().DeviceClasses().Get(w.t.Context(), "gpu.example.com", metav1.GetOptions{})
	require.NoError(w.t, err)
	return string(installation.Of(class))
}

// TestClassWithoutARecord is adopted by the first of two that want it, and the other
// leaves it alone.
func TestClassWithoutARecord(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, mapping, classOf("true", managedBy, "kwok-dra"))
		w.wrote("update") // before the other starts: of two at once, either may be the first
		w.configureAs(elsewhere, mapping)
		w.start(elsewhere, "b/kwok-dra")
		w.wrote()
		require.Equal(t, "a/kwok-dra", w.recordedTo())
		w.stop()
		w.edit(func(class *resourcev1.DeviceClass) { class.Annotations = nil })
		time.Sleep(time.Minute)
		require.Equal(t, []string{"update"}, w.takeWrites())
		require.Equal(t, "a/kwok-dra", w.recordedTo())
	})
}

// TestPreviousVersionDeletesTheClass that it does not want itself, each time that it sees
// it. That is answered less and less often.
func TestPreviousVersionDeletesTheClass(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, mapping)
		minutes := func() int {
			for range 1200 {
				time.Sleep(500 * time.Millisecond)
				synctest.Wait()
				if _, err := w.ResourceV1().DeviceClasses().Get(t.Context(), "gpu.example.com", metav1.GetOptions{}); err == nil {
					w.remove()
				}
			}
			return len(w.takeWrites())
		}
		require.LessOrEqual(t, minutes(), 20)
		require.LessOrEqual(t, minutes(), 2)
		w.configure(strings.Replace(mapping, "gpu.", "GPU.", 1))
		require.Equal(t, []string{"create"}, w.takeWrites(), "what is new does not wait")
	})
}

// TestPreviousVersionMakesAClass that is not wanted here, again and again.
func TestPreviousVersionMakesAClass(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, "")
		w.configure("")
		for i := range 100 {
			class := classOf("true", managedBy, "kwok-dra")
			class.UID = types.UID(strconv.Itoa(i))
			_, _ = w.ResourceV1().DeviceClasses().Create(t.Context(), class, metav1.CreateOptions{})
			time.Sleep(time.Second)
		}
		require.Equal(t, 1, strings.Count(strings.Join(w.takeWrites(), " "), "delete"))
	})
}

// TestNothingIsRememberedOfClassesThatAreGone: what was told of a class, asked about it, and
// retired under its name ends with it.
func TestNothingIsRememberedOfClassesThatAreGone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, "")
		w.configure("# nothing\n")
		w.drops = true
		for i := range 50 {
			name := fmt.Sprintf("gpu%d.example.com", i)
			w.configure(strings.Replace(mapping, "gpu.example.com", name, 1))
			former := classOf("true", managedBy, "kwok-dra")
			former.Name, former.UID = fmt.Sprintf("former%d.example.com", i), types.UID(strconv.Itoa(i))
			_, err := w.ResourceV1().DeviceClasses().Create(t.Context(), former, metav1.CreateOptions{})
			require.NoError(t, err)
			synctest.Wait()
		}
		w.configure("# nothing\n")
		time.Sleep(2 * maxRewriteDelay)
		synctest.Wait()
		require.Empty(t, w.keeper.reported)
		require.Empty(t, w.keeper.droppedAt)
		require.Empty(t, w.keeper.retired)
	})
}
