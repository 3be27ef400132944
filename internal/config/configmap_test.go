package config

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/internal/testing/runtest"
)

var (
	mapName    = types.NamespacedName{Namespace: "kube-system", Name: "kwok-dra"}
	mapCarrier = ConfigMapCarrier(mapName)
)

// quiet is the context of a test.
var quiet = runtest.QuietContext

// cluster is a ConfigMap that is watched, in a bubble.
type cluster struct {
	t        *testing.T
	client   *fake.Clientset
	store    *Store
	recorder *record.FakeRecorder
	changes  int
}

func watching(t *testing.T, documents ...string) *cluster {
	t.Helper()
	c := &cluster{t: t, client: fake.NewClientset(), store: NewStore(mapCarrier), recorder: record.NewFakeRecorder(100)}
	c.store.OnChange(func() { c.changes++ })
	if len(documents) > 0 {
		c.create(documents...)
	}
	configMap := NewConfigMap(c.client, mapName, c.store, c.recorder)
	c.run(configMap)
	return c
}

// run watches the ConfigMap until the test ends.
func (c *cluster) run(configMap *ConfigMap) {
	t := c.t
	t.Helper()
	t.Cleanup(synctest.Wait)
	runtest.UntilEnd(quiet(t), t, configMap.Run)
	synctest.Wait()
	require.True(t, cache.IsDone(configMap.carrier), "synced")
}

func configMapOf(documents ...string) *corev1.ConfigMap {
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: mapName.Namespace, Name: mapName.Name}, Data: map[string]string{}}
	for i, document := range documents {
		made.Data[string(rune('a'+i))+".yaml"] = document
	}
	return made
}

func (c *cluster) create(documents ...string) {
	c.t.Helper()
	_, err := c.client.CoreV1().ConfigMaps(mapName.Namespace).Create(runtest.QuietContext(c.t), configMapOf(documents...), metav1.CreateOptions{})
	require.NoError(c.t, err)
	synctest.Wait()
}

func (c *cluster) update(configMap *corev1.ConfigMap) {
	c.t.Helper()
	_, err := c.client.CoreV1().ConfigMaps(mapName.Namespace).Update(runtest.QuietContext(c.t), configMap, metav1.UpdateOptions{})
	require.NoError(c.t, err)
	synctest.Wait()
}

func (c *cluster) delete() {
	c.t.Helper()
	require.NoError(c.t, c.client.CoreV1().ConfigMaps(mapName.Namespace).Delete(runtest.QuietContext(c.t), mapName.Name, metav1.DeleteOptions{}))
	synctest.Wait()
}

func (c *cluster) events() []string {
	events := []string{}
	for len(c.recorder.Events) > 0 {
		events = append(events, <-c.recorder.Events)
	}
	return events
}

func TestConfigMap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := watching(t, template("a"), configured("c", "")+"---\n"+template("b"))
		require.Equal(t, []string{"a", "b"}, setNames(c.store.Current()))
		c.update(configMapOf(template("c")))
		require.Equal(t, []string{"c"}, setNames(c.store.Current()))
		require.Equal(t, 2, c.changes)
		require.Empty(t, c.events())
		requireMetrics(t, c.store, mapCarrier, 0, 1)
	})
}

func TestConfigMapThatIsInvalid(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := watching(t, template("a"))
		good := c.store.Current()
		bad := configMapOf("kind: Pod\n", "[", template("b"))
		c.update(bad)
		require.Same(t, good, c.store.Current())
		requireMetrics(t, c.store, mapCarrier, 1, 0)
		events := c.events()
		require.Len(t, events, 1)
		require.True(t, strings.HasPrefix(events[0], "Warning InvalidConfiguration ConfigMap kube-system/kwok-dra, key a.yaml, document 1: apiVersion"), events[0])
		require.Contains(t, events[0], "ConfigMap kube-system/kwok-dra, key b.yaml, document 1: ")

		labelled := bad.DeepCopy()
		labelled.Labels = map[string]string{"a": "b"}
		c.update(labelled)
		require.Empty(t, c.events(), "the same data is not complained of again")

		c.update(configMapOf(template("b")))
		require.Equal(t, []string{"b"}, setNames(c.store.Current()))
		requireMetrics(t, c.store, mapCarrier, 1, 1)
		require.Empty(t, c.events())
		require.Equal(t, 2, c.changes)
	})
}

// TestUnreadableTextsKeepTheConfiguration: a text that cannot be read says nothing, wherever it
// is, so what was good last stays in force, and an event says what is wrong where.
func TestUnreadableTextsKeepTheConfiguration(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, want string }{
		"Latin-1":      {"# f\xfcr GPUs\n" + template("b"), "key a.yaml, document 1: line 1 of the document: the byte 0xfc at offset 3 is not UTF-8: save the text as UTF-8"},
		"further down": {template("b") + "---\n" + template("c") + "# f\xfcr GPUs\n", "is not UTF-8: save the text as UTF-8"},
		"zeros":        {"\x00\x00\x00\x00", "the byte 0x00 at offset 0 is no text"},
		"zeros at end": {template("b") + "\x00", "is no text: save the text as UTF-8, without NUL bytes"},
		"gzip":         {"\x1f\x8b\x08\x00", "the text is compressed by gzip: decompress it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := watching(t, template("a"))
				good := c.store.Current()
				unreadable := configMapOf()
				unreadable.BinaryData = map[string][]byte{"a.yaml": []byte(test.text)}
				c.update(unreadable)
				require.Same(t, good, c.store.Current())
				events := c.events()
				require.Len(t, events, 1)
				require.Contains(t, events[0], "Warning InvalidConfiguration ConfigMap kube-system/kwok-dra, key a.yaml")
				require.Contains(t, events[0], test.want)
			})
		})
	}
}

// TestBinaryDataIsRead where it is text.
func TestBinaryDataIsRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := watching(t, template("a"))
		binary := configMapOf(template("b"))
		binary.BinaryData = map[string][]byte{"z.yaml": []byte("\xef\xbb\xbf" + template("c"))}
		c.update(binary)
		require.Equal(t, []string{"b", "c"}, setNames(c.store.Current()), "with a byte order mark too")
		binary.BinaryData["z.yaml"] = []byte(template("d"))
		c.update(binary)
		require.Equal(t, []string{"b", "d"}, setNames(c.store.Current()))
		require.Empty(t, c.events())
	})
}

func TestConfigMapThatIsInvalidAtStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := watching(t, "kind: Pod\n")
		require.Nil(t, c.store.Current(), "nothing may be retired on the word of a broken document")
		require.Len(t, c.events(), 1)
		require.Zero(t, c.changes)
		c.update(configMapOf(template("a")))
		require.Equal(t, []string{"a"}, setNames(c.store.Current()))
	})
}

func TestConfigMapThatIsAbsent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := watching(t)
		require.Nil(t, c.store.Current(), "nothing may be retired on the word of nobody")
		requireMetrics(t, c.store, mapCarrier, 0, 0)
		c.create(template("a"))
		require.Equal(t, []string{"a"}, setNames(c.store.Current()))
		c.delete()
		require.Equal(t, []string{"a"}, setNames(c.store.Current()), "the last good version stays in force")
		requireMetrics(t, c.store, mapCarrier, 0, 0)
		c.create(template("b"))
		require.Equal(t, []string{"b"}, setNames(c.store.Current()))
		c.update(configMapOf())
		require.Empty(t, c.store.Current().Templates, "an empty ConfigMap retires all")
		require.Empty(t, c.events())
		require.Equal(t, 3, c.changes)
	})
}

// TestConfigMapBesideCustomResources: where there was none at the start, the
// custom resources count alone. One that goes later leaves what it said.
func TestConfigMapBesideCustomResources(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{t: t, client: fake.NewClientset(), store: NewStore(mapCarrier, ObjectsCarrier), recorder: record.NewFakeRecorder(100)}
		require.NoError(t, c.store.Replace(ObjectsCarrier, &Documents{}))
		require.Nil(t, c.store.Current())
		configMap := NewConfigMap(c.client, mapName, c.store, c.recorder)
		c.run(configMap)
		require.NotNil(t, c.store.Current())
		require.Empty(t, c.store.Current().Templates)
		c.create(template("a"))
		require.Equal(t, []string{"a"}, setNames(c.store.Current()))
		c.delete()
		require.Equal(t, []string{"a"}, setNames(c.store.Current()))
	})
}

// see takes the ConfigMap that there is, or nil.
func (c *ConfigMap) see(t *testing.T, configMap *corev1.ConfigMap) {
	t.Helper()
	c.store.syncCarrier(klog.FromContext(quiet(t)), c.carrier, func() []*source { return []*source{c.sourceOf(configMap)} })
}

// TestConfigMapThatContradictsTheFiles is refused, with an event.
func TestConfigMapThatContradictsTheFiles(t *testing.T) {
	t.Parallel()
	store := NewStore(FilesCarrier, mapCarrier)
	require.NoError(t, store.Replace(FilesCarrier, decode(t, template("a"))))
	recorder := record.NewFakeRecorder(10)
	configMap := NewConfigMap(fake.NewClientset(), mapName, store, recorder)
	configMap.see(t, configMapOf(template("a")))
	require.Nil(t, store.Current())
	require.Contains(t, <-recorder.Events, `key a.yaml, document 1: ResourcePoolTemplate "a": metadata.name: also in file.yaml, document 1`)
}

func TestLongProblemsFitAnEvent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := watching(t, strings.Repeat("---\nkind: Pöd\n", 100))
		events := c.events()
		require.Len(t, events, 1)
		require.LessOrEqual(t, len(events[0]), len("Warning InvalidConfiguration ")+1024)
	})
}
