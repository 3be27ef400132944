package claims

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/testing/configtest"
)

func customResource(t *testing.T, document string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{}}
	require.NoError(t, yaml.Unmarshal([]byte(document), &object.Object))
	return object
}

// startWith starts the Controller with custom resources. What it returns has others in
// their place.
func (w *world) startWith(documents ...string) (replace func(...*unstructured.Unstructured)) {
	w.t.Helper()
	w.store = config.NewStore(config.ObjectsCarrier)
	carrier := config.NewObjects(w.store, record.NewFakeRecorder(100), func() {})
	replace = func(all ...*unstructured.Unstructured) {
		carrier.Replace(w.t.Context(), func() []*unstructured.Unstructured { return all })
	}
	all := make([]*unstructured.Unstructured, len(documents))
	for i, document := range documents {
		all[i] = customResource(w.t, document)
	}
	replace(all...)
	w.start()
	return replace
}

const refused = "apiVersion: dra.kwok.x-k8s.io/v1alpha1\nkind: ResourcePoolTemplate\nmetadata: {name: of-d}\nspec: {driver: d, devices: []}\n"

// TestPodOnADeviceOfARefusedDocument: after a restart nobody knows what the driver of
// a published device does, so a new Pod waits, and is told for what, until the
// document is good, or gone.
func TestPodOnADeviceOfARefusedDocument(t *testing.T) {
	for name, test := range map[string]struct {
		settle func(t *testing.T) []*unstructured.Unstructured
		want   string
	}{
		"good": {func(t *testing.T) []*unstructured.Unstructured {
			t.Helper()
			good := customResource(t, template("d", ""))
			good.SetGeneration(1)
			return []*unstructured.Unstructured{good}
		}, "prepare c, ready p"},
		"gone": {func(*testing.T) []*unstructured.Unstructured { return nil }, "ready p"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				pod := newPod("p", "c")
				w := idleWorld(t, "", newNode("n"), pod, allocated("c", pod))
				replace := w.startWith(refused)
				w.wrote("waiting p")
				w.failures("NodePrepareResources failed for ResourceClaim c: requested device is not allocatable: gpu-0 in pool n of driver d, " +
					`until this is settled: custom resource: ResourcePoolTemplate "of-d": spec.devices: Required value: give at least one device`)
				replace(test.settle(t)...)
				w.wrote(test.want)
				w.settled()
			})
		})
	}
}

// TestPodWhileNothingIsInForce is told why, once.
func TestPodWhileNothingIsInForce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pod := newPod("p", "c")
		w := idleWorld(t, "", newNode("n"), pod, allocated("c", pod))
		w.store = config.NewStore("test", "other")
		configtest.Replace(t, w.store, template("d", ""))
		w.start()
		documents, err := config.Decode("other", []byte(template("d", "")))
		require.NoError(t, err)
		why := w.store.Replace("other", documents)
		require.Error(t, why)
		time.Sleep(10 * time.Minute)
		w.wrote("")
		w.failures("no configuration is in force: " + why.Error())
		require.NoError(t, w.store.Replace("other", &config.Documents{}))
		w.wrote("prepare c, ready p")
	})
}

// TestPodOnADeviceOfOthersBesideARefusedDocument: a device that kwok-dra does not
// publish is of a driver that it does not play.
func TestPodOnADeviceOfOthersBesideARefusedDocument(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pod := newPod("p", "c")
		w := idleWorld(t, "", newNode("n"), pod, allocated("c", pod))
		w.Remove(newSlice("d", "n"))
		w.startWith(refused)
		w.wrote("ready p")
		w.failures()
	})
}

// TestPreparedPodOnADeviceOfARefusedDocument stays as it is, with the health that it
// shows.
func TestPreparedPodOnADeviceOfARefusedDocument(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pod := newPod("p", "c")
		w := idleWorld(t, template("d", "")+configuration("{podStatus: Faithful}"), newNode("n"), pod, allocated("c", pod))
		w.start()
		w.wrote("waiting p, prepare c, ready p")
		w.editPod("p", func(pod *corev1.Pod) {
			pod.Status.Phase = corev1.PodRunning
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: pod.Spec.Containers[0].Name}}
		})
		w.wrote("health p")
		w.stop()
		w.startWith(refused, configuration("{podStatus: Faithful}"))
		synctest.Wait()
		w.settled()
		w.failures()
		require.Equal(t, []string{"d/n/gpu-0"}, w.shown("c"))
	})
}
