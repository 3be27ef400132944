package resourceslice

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/testing/configtest"
)

// TestNoConfigurationNoWrites: as long as a carrier is unknown, what it would
// say of existing slices is unknown too.
func TestNoConfigurationNoWrites(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, template("a", "d", "{name: gpu}"), fakeNode("n", true))
		w.wrote("create 1")
		w.stop()
		w.store = config.NewStore("test")
		w.deleteNode("n")
		w.start()
		w.addNode(fakeNode("m", true))
		w.wrote("")
		configtest.Replace(t, w.store, template("a", "d", "{name: gpu}"))
		w.wrote("delete 1, create 1")
	})
}

const missing = "{name: gpu, attributes: {x: \"{{ .Node.metadata.labels.missing }}\"}}"

// TestHeldDriver: a driver whose templates cannot be rendered keeps its slices,
// others go on.
func TestHeldDriver(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, template("a", "held", oneOfEach)+template("b", "other", oneOfEach), fakeNode("n", true))
		w.wrote("create 2")
		configtest.Replace(t, w.store, template("a", "held", missing)+template("b", "other", "{name: gpu, attributes: {zone: other}}"))
		w.wrote("patch 1")
		require.Len(t, w.list(t), 2)
		events := w.events()
		require.Len(t, events, 1)
		require.True(t, strings.HasPrefix(events[0], "Warning PublishFailed driver held: render template a: device gpu: spec.devices[0].attributes[x]"), events[0])

		w.setNode("n", func(node *corev1.Node) { node.Labels["missing"] = "here" })
		w.wrote("patch 1")
		require.Empty(t, w.events())
		w.deleteNode("n")
		w.wrote("delete 2")
	})
}

func TestHeldBySelector(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		text := template("a", "held", "{name: gpu}") + "  publishWhen: {matchExpressions: [{cel: {expression: 'self.metadata.labels[\"missing\"] == \"a\"'}}]}\n"
		w := newWorld(t, text+template("b", "other", "{name: gpu}"), fakeNode("n", true))
		w.wrote("create 1")
		events := w.events()
		require.Len(t, events, 1)
		require.Contains(t, events[0], "driver held: pool n: template a: evaluate spec.publishWhen: ")
	})
}

func internalError(string) error { return apierrors.NewInternalError(errors.New("down")) }

func TestErrorsAreRetried(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		failures := 3
		w := newWorld(t, "", fakeNode("n", true))
		w.Refuse(func(string) error {
			if failures--; failures >= 0 {
				return internalError("")
			}
			return nil
		})
		configtest.Replace(t, w.store, template("a", "d", "{name: gpu}"))
		time.Sleep(349 * time.Millisecond)
		w.requireWrites("create 3")
		time.Sleep(time.Millisecond) // 50 + 100 + 200 ms
		w.wrote("create 1")
		require.Empty(t, w.events(), "a restart of the API server is nothing to tell of")
		require.InDelta(t, 3, testutil.ToFloat64(w.publisher.reporter.metrics.failing.WithLabelValues("api")), 0)
		require.InDelta(t, 3, testutil.ToFloat64(w.publisher.reporter.metrics.writes.WithLabelValues("create", "InternalError")), 0)
	})
}

func TestEventAfterPatience(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, "", fakeNode("n", true))
		w.Refuse(internalError)
		configtest.Replace(t, w.store, template("a", "d", "{name: gpu}"))
		time.Sleep(1549 * time.Millisecond) // 50 + 100 + 200 + 400 + 800 ms
		w.requireWrites("create 5")
		require.Empty(t, w.events())
		time.Sleep(time.Millisecond)
		synctest.Wait()
		w.requireWrites("create 1")
		events := w.events()
		require.Len(t, events, 1, "the sixth failure")
		require.Contains(t, events[0], "Warning PublishFailed create slice 00000-d-n-")
		w.Refuse(nil)
		time.Sleep(2 * time.Second)
		w.wrote("create 1")
		require.Empty(t, w.events())
	})
}

func TestEventAtOnceForWhatIsRefused(t *testing.T) {
	for name, err := range map[string]error{
		"invalid":   apierrors.NewInvalid(schema.GroupKind{}, "a", nil),
		"forbidden": apierrors.NewForbidden(resourcev1.Resource("resourceslices"), "a", nil),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, "", fakeNode("n", true))
				w.Refuse(func(string) error { return err })
				configtest.Replace(t, w.store, template("a", "d", "{name: gpu}"))
				synctest.Wait()
				require.Len(t, w.events(), 1)
				w.stop()
			})
		})
	}
}

// TestRefusedFleet: what the API server refuses of all nodes loads neither it nor the recorder of events, until a new
// configuration ends the wait.
func TestRefusedFleet(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const nodes = 50
		var objects []runtime.Object
		for i := range nodes {
			objects = append(objects, fakeNode(fmt.Sprintf("n%02d", i), true))
		}
		w := newWorld(t, "", objects...)
		w.Refuse(func(string) error { return apierrors.NewInvalid(schema.GroupKind{}, "a", nil) })
		configtest.Replace(t, w.store, template("a", "d", "{name: gpu}"))
		for range 60 {
			time.Sleep(time.Minute)
			w.events()
		}
		creates := w.takeWrites()["create"]
		require.Less(t, creates, nodes*25)
		require.Greater(t, creates, nodes*15, "each node tries again every few minutes")

		w.Refuse(nil)
		configtest.Replace(t, w.store, template("a", "d", "{name: gpu, attributes: {x: 1}}"))
		time.Sleep(time.Minute)
		w.wrote("create 50")
	})
}

// TestLostRace: a slice changes between the cache and the write. That is
// retried and nobody is alarmed.
func TestLostRace(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, template("a", "d", "{name: gpu}"), fakeNode("n", true))
		w.wrote("create 1")
		name, raced := w.list(t)[0].Name, false
		w.PrependReactor("patch", "resourceslices", func(clienttesting.Action) (bool, runtime.Object, error) {
			if !raced {
				raced = true
				w.edit(name, func(slice *resourcev1.ResourceSlice) { slice.Annotations = map[string]string{"a": "b"} })
			}
			return false, nil, nil
		})
		configtest.Replace(t, w.store, template("a", "d", "{name: gpu, attributes: {x: 1}}"))
		w.wrote("patch 2")
		require.Empty(t, w.events())
		require.Zero(t, testutil.ToFloat64(w.publisher.reporter.metrics.failing.WithLabelValues("api")))
	})
}

func TestDroppedField(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, "", fakeNode("n", true), fakeNode("m", true))
		w.off = []string{"DRADeviceTaints"}
		configtest.Replace(t, w.store, template("a", "d", tainted))
		w.wrote("dry-run 1, create 2")
		events := w.events()
		require.Len(t, events, 1)
		require.Equal(t, "Warning FieldsDropped the API server drops taints of the devices of template a: turn on its feature gate DRADeviceTaints, or remove the field", events[0])
		require.InDelta(t, 1, testutil.ToFloat64(w.publisher.reporter.metrics.dropped.WithLabelValues("a", "taints")), 0)
	})
}

// TestAdmissionThatChangesSlices must not end in a loop of writes without a
// word.
func TestAdmissionThatChangesSlices(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, "", fakeNode("n", true))
		w.change = func(slice *resourcev1.ResourceSlice) { slice.Spec.Devices[0].Name = "changed" }
		configtest.Replace(t, w.store, template("a", "d", tainted))
		time.Sleep(time.Hour)
		synctest.Wait()
		writes := w.takeWrites()
		require.Equal(t, 1, writes["create"])
		require.Less(t, writes["patch"], 25, "with backoff up to 5 min")
		require.LessOrEqual(t, writes["dry-run"], writes["patch"]+2, "asked once for each")
		events := w.events()
		require.NotEmpty(t, events)
		require.Contains(t, events[0], "the API server stored something else than it was sent")
	})
}

// TestOneDriverRefused: what the API server refuses of one driver, also in the
// dry run, does not hold up another.
func TestOneDriverRefused(t *testing.T) {
	for _, verb := range []string{"create", "dry-run"} {
		t.Run(verb, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, "", fakeNode("n", true))
				w.Refuse(func(call string) error {
					if strings.HasPrefix(call, verb) && (verb == "dry-run" || strings.Contains(call, "-bad-")) {
						return internalError("")
					}
					return nil
				})
				bad := "{name: gpu, taints: [{key: k, effect: NoSchedule}]}"
				configtest.Replace(t, w.store, template("a", "bad", bad)+template("b", "good", "{name: gpu}"))
				time.Sleep(time.Second)
				require.Len(t, w.list(t), 1)
				require.Equal(t, "good", w.list(t)[0].Spec.Driver)
			})
		})
	}
}

// TestDeletedWhileNotReady: publishWhen is asked before a pool is published, not
// before it is repaired.
func TestDeletedWhileNotReady(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, template("a", "d", "{name: gpu}"), fakeNode("n", true))
		w.wrote("create 1")
		w.setNode("n", setReady(corev1.ConditionFalse))
		w.remove(w.list(t)[0].Name)
		time.Sleep(time.Minute)
		require.Len(t, w.list(t), 1)
	})
}
