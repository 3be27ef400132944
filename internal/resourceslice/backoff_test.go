package resourceslice

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/testing/configtest"
)

const (
	older = "{name: gpu, attributes: {x: 1}}"
	newer = "{name: gpu, attributes: {x: 2}}"
)

// withSecond starts a second Publisher on the server, with a configuration of its
// own, as a replica has whose watch lags behind.
func withSecond(w *world, documents string) *world {
	second := &world{server: w.server, t: w.t, store: config.NewStore("test")}
	configtest.Replace(w.t, second.store, documents)
	second.start()
	return second
}

func (w *world) attribute() int64 {
	w.t.Helper()
	list := w.list(w.t)
	require.Len(w.t, list, 1)
	return *list[0].Spec.Devices[0].Attributes["x"].IntValue
}

func (w *world) countWrites() int {
	count := 0
	for _, n := range w.takeWrites() {
		count += n
	}
	return count
}

// TestTwoViews has two replicas act for a node by different configurations: they
// undo each other's writes less and less often. Once they see the same, it is
// there at once.
func TestTwoViews(t *testing.T) {
	for name, test := range map[string][2]string{
		"an attribute":   {older, newer},
		"another driver": {"{name: gpu}", "{name: nic}"},
		"more slices":    {"{name: gpu}", twoSlices},
		"nothing at all": {"{name: gpu, attributes: {x: 1}}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				documents := func(device string) string {
					if device == "" {
						return template("other", "other", "{name: x}") + "  publishWhen: {matchLabels: {never: \"\"}}\n"
					}
					return template("a", "d", device)
				}
				w := newWorld(t, documents(test[0]), fakeNode("n", true))
				synctest.Wait()
				second := withSecond(w, documents(test[1]))
				time.Sleep(10 * time.Second)
				require.Less(t, w.countWrites(), 60)
				time.Sleep(10 * time.Minute)
				require.Less(t, w.countWrites(), 150)
				configtest.Replace(t, w.store, documents(test[1]))
				synctest.Wait()
				before := specs(w.list(t))
				w.takeWrites()
				w.wrote("")
				require.Equal(t, before, specs(w.list(t)))
				second.wrote("")
			})
		})
	}
}

// TestOwnChangesDoNotWait: what others did holds back nothing that is new.
func TestOwnChangesDoNotWait(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, template("a", "d", oneOfEach), fakeNode("n", true))
		w.wrote("create 1")
		spoil := func() {
			w.edit(w.list(t)[0].Name, func(s *resourcev1.ResourceSlice) { s.Spec.Devices[0].Name = "spoilt" })
			synctest.Wait()
		}
		for range freeRounds {
			spoil()
			w.requireWrites("patch 1")
		}
		for i := range 5 {
			spoil()
			w.requireWrites("")
			time.Sleep(firstRound << i)
			synctest.Wait()
			w.requireWrites("patch 1")
		}
		spoil()
		w.setNode("n", func(node *corev1.Node) { node.Labels["zone"] = "z2" })
		w.requireWrites("patch 1")
		spoil()
		w.requireWrites("")
		configtest.Replace(t, w.store, template("a", "d", "{name: gpu, attributes: {x: 2}}"))
		synctest.Wait()
		w.requireWrites("patch 1")
		require.EqualValues(t, 2, w.attribute())

		time.Sleep(2*lastRound + time.Second)
		spoil()
		w.wrote("patch 1")
	})
}
