package resourceslice

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kwok-dra/kwok-dra/internal/testing/apitest"
	"github.com/kwok-dra/kwok-dra/internal/testing/configtest"
)

// chart is a template whose pools come with the Pods of a chart.
const chart = `---
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: ResourcePoolTemplate
metadata: {name: chart}
spec:
  driver: '{{ .DriverPod.env.DRIVER }}'
  driverPod: {selector: {matchLabels: {app: driver}}}
  devices: [{name: gpu, count: 2, attributes: {version: {string: '{{ .DriverPod.tag }}'}}}]
`

// driverPod is a Pod that runs the plugin of a driver on a node.
func driverPod(name, node, driver string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "drivers", Name: name, Labels: map[string]string{"app": "driver"}, CreationTimestamp: now()},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Name: "plugin", Image: "example.com/driver:v1", Env: []corev1.EnvVar{{Name: "DRIVER", Value: driver}},
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
}

func now() metav1.Time { return metav1.NewTime(time.Now().Truncate(time.Second)) }

// run has the container of a Pod run.
func run(pod *corev1.Pod) {
	pod.Status = corev1.PodStatus{
		Phase:             corev1.PodRunning,
		Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now()}},
		ContainerStatuses: []corev1.ContainerStatus{{Name: "plugin", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now()}}}},
	}
}

// unready has a Pod be not Ready though its container runs.
func unready(pod *corev1.Pod) { pod.Status.Conditions[0].Status = corev1.ConditionFalse }

// crash has the container of a Pod end.
func crash(pod *corev1.Pod) {
	unready(pod)
	pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: now()}}
}

func (w *world) addPod(pod *corev1.Pod) {
	w.t.Helper()
	w.Add(pod)
	synctest.Wait()
}

func (w *world) setPod(name string, change func(pod *corev1.Pod)) {
	w.t.Helper()
	apitest.Edit(w.Server, "drivers", name, change)
	synctest.Wait()
}

func (w *world) removePod(name string) {
	w.t.Helper()
	w.Remove(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "drivers", Name: name}})
	synctest.Wait()
}

// writes are those of this moment.
func (w *world) writes(want string) {
	w.t.Helper()
	synctest.Wait()
	w.requireWrites(want)
}

// wipes are the writes of 30 s from now, before which there are none.
func (w *world) wipes(want string) {
	w.t.Helper()
	time.Sleep(30*time.Second - time.Nanosecond)
	w.writes("")
	time.Sleep(time.Nanosecond)
	w.wrote(want)
}

// withDriverPod is a world with one node and a slice that came with a Pod.
func withDriverPod(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, chart, fakeNode("n", true))
	w.addPod(driverPod("a", "n", "d1"))
	w.wrote("")
	require.Zero(t, testutil.ToFloat64(w.driverPods))
	w.setPod("a", run)
	w.wrote("create 1")
	require.Equal(t, "d1", w.list(t)[0].Spec.Driver)
	require.InDelta(t, 1, testutil.ToFloat64(w.driverPods), 0)
	return w
}

// TestDriverPodGoes: slices go 30 s after the plugin in the Pod has gone.
func TestDriverPodGoes(t *testing.T) {
	for name, test := range map[string]struct {
		do func(w *world)
		// after is when the slices go, or 0 where they stay.
		after time.Duration
	}{
		"deleted":   {func(w *world) { w.removePod("a") }, 30 * time.Second},
		"not ready": {func(w *world) { w.setPod("a", unready) }, 0},
		"crashed":   {func(w *world) { w.setPod("a", crash) }, 30 * time.Second},
		"crashed before": {func(w *world) {
			w.setPod("a", func(pod *corev1.Pod) {
				crash(pod)
				pod.Status.ContainerStatuses[0].State.Terminated.FinishedAt = metav1.NewTime(now().Add(-10 * time.Second))
			})
		}, 20 * time.Second},
		"failed": {func(w *world) {
			w.setPod("a", func(pod *corev1.Pod) {
				crash(pod)
				pod.Status.Phase = corev1.PodFailed
			})
		}, 30 * time.Second},
		"being deleted": {func(w *world) {
			w.setPod("a", func(pod *corev1.Pod) {
				pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &metav1.Time{Time: now().Add(25 * time.Second)}, new(int64(30))
			})
		}, 25 * time.Second},
		"crashed, then deleted": {func(w *world) {
			w.setPod("a", crash)
			time.Sleep(10 * time.Second)
			w.removePod("a")
		}, 20 * time.Second},
		"selector edited": {func(w *world) {
			configtest.Replace(w.t, w.store, strings.Replace(chart, "app: driver", "app: other", 1))
		}, 30 * time.Second},
		"label is lost": {func(w *world) { w.setPod("a", func(pod *corev1.Pod) { pod.Labels = nil }) }, 30 * time.Second},
		"template gone": {func(w *world) { configtest.Replace(w.t, w.store, "") }, time.Nanosecond},
		"node gone":     {func(w *world) { w.deleteNode("n") }, time.Nanosecond},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := withDriverPod(t)
				time.Sleep(time.Until(now().Add(time.Second))) // times in a status are whole seconds
				test.do(w)
				if test.after == 0 {
					w.wrote("")
					return
				}
				time.Sleep(test.after - time.Nanosecond)
				if test.after > time.Nanosecond {
					w.writes("")
				}
				time.Sleep(time.Nanosecond)
				w.writes("delete 1")
				w.wrote("")
				require.Empty(t, w.events())
			})
		})
	}
}

// TestDriverPodComesBack: a plugin that is there within 30 s keeps the slices.
func TestDriverPodComesBack(t *testing.T) {
	for name, test := range map[string]struct {
		driver, tag string
		then        func(pod *corev1.Pod)
		want, wiped string
	}{
		"the same":      {"d1", "v1", run, "", ""},
		"a new version": {"d1", "v2", run, "patch 1", ""},
		"not Ready": {"d1", "v1", func(pod *corev1.Pod) {
			run(pod)
			unready(pod)
		}, "", ""},
		"an image that is not there": {"d1", "bad", func(*corev1.Pod) {}, "", "delete 1"},
		"of another driver":          {"d2", "v1", run, "create 1", "delete 1"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := withDriverPod(t)
				w.removePod("a")
				time.Sleep(10 * time.Second)
				w.writes("")
				w.addPod(withTag(driverPod("b", "n", test.driver), test.tag))
				time.Sleep(19 * time.Second)
				w.writes("")
				w.setPod("b", test.then)
				w.writes(test.want)
				time.Sleep(time.Second)
				w.wrote(test.wiped)
			})
		})
	}
}

func withTag(pod *corev1.Pod, tag string) *corev1.Pod {
	pod.Spec.Containers[0].Image = "example.com/driver:" + tag
	return pod
}

// TestDriverPodTakesOver: slices stay as they are until the new Pod has been Ready, whatever
// happens to it later, and over a restart.
func TestDriverPodTakesOver(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := withDriverPod(t)
		time.Sleep(time.Second)
		w.addPod(withTag(driverPod("b", "n", "d1"), "v2"))
		w.setPod("b", func(pod *corev1.Pod) { run(pod); unready(pod) })
		w.removePod("a")
		w.wrote("")
		w.stop()
		w.start()
		w.wrote("")
		w.setPod("b", func(pod *corev1.Pod) {
			pod.Status.Conditions[0].Status, pod.Status.Conditions[0].LastTransitionTime = corev1.ConditionTrue, now()
		})
		w.wrote("patch 1")
		w.setPod("b", func(pod *corev1.Pod) {
			pod.Status.Conditions[0].Status, pod.Status.Conditions[0].LastTransitionTime = corev1.ConditionFalse, now()
		})
		w.wrote("")
		configtest.Replace(t, w.store, strings.Replace(chart, "count: 2", "count: 3", 1))
		w.wrote("patch 1")
		require.Empty(t, w.events())
	})
}

// TestSelectorIsEdited to one that selects another Pod, which takes over.
func TestSelectorIsEdited(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := withDriverPod(t)
		other := withTag(driverPod("other", "n", "d1"), "v2")
		other.Labels["app"] = "other"
		run(other)
		w.addPod(other)
		w.wrote("")
		configtest.Replace(t, w.store, strings.Replace(chart, "app: driver", "app: other", 1))
		w.wrote("patch 1")
	})
}

// TestSeveralDriverPods: each release has a pool, and of two Pods of one driver the newer
// counts once it is Ready.
func TestSeveralDriverPods(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := withDriverPod(t)
		other := driverPod("other", "n", "d2")
		run(other)
		w.addPod(other)
		w.wrote("create 1")
		require.ElementsMatch(t, []string{"d1", "d2"}, []string{w.list(t)[0].Spec.Driver, w.list(t)[1].Spec.Driver})

		w.addPod(withTag(driverPod("b", "n", "d1"), "v2"))
		w.wrote("")
		w.setPod("b", run)
		w.wrote("patch 1")
		w.removePod("a")
		w.wrote("")
		w.removePod("other")
		w.wipes("delete 1")
		require.Equal(t, "d1", w.list(t)[0].Spec.Driver)
	})
}

// TestDriverPodsAndNode: what the node says holds as well.
func TestDriverPodsAndNode(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, chart+"  retireWhen: {matchLabels: {gone: \"1\"}}\n", fakeNode("n", false))
		a := driverPod("a", "n", "d1")
		run(a)
		w.addPod(a)
		w.wrote("")
		w.setNode("n", setReady(corev1.ConditionTrue))
		w.wrote("create 1")
		w.setNode("n", func(node *corev1.Node) { node.Labels["gone"] = "1" })
		w.wrote("delete 1")
		w.setNode("n", func(node *corev1.Node) { delete(node.Labels, "gone") })
		w.wrote("create 1")
		w.removePod("a")
		time.Sleep(time.Second)
		w.writes("")
		w.setNode("n", func(node *corev1.Node) { node.Labels["gone"] = "1" })
		w.writes("delete 1")
	})
}

// TestDriverPodThatCannotBeRendered is told of on the node, and changes nothing.
func TestDriverPodThatCannotBeRendered(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := withDriverPod(t)
		w.removePod("a")
		bad := driverPod("b", "n", "d1")
		bad.Spec.Containers[0].Env = nil
		run(bad)
		w.addPod(bad)
		w.wrote("")
		require.Contains(t, w.events()[0], "the driver Pod lacks a field that this reads")
	})
}

// TestDriverPodsAreNotWatched without a template that has some, and no longer than one has.
func TestDriverPodsAreNotWatched(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, template("a", "d", "{name: gpu}"), fakeNode("n", true))
		w.wrote("create 1")
		watches := func() (count int) {
			for _, action := range w.Actions() {
				if watched, ok := action.(clienttesting.WatchActionImpl); ok && watched.ListOptions.LabelSelector == "app=driver" {
					count++
				}
			}
			return count
		}
		require.Zero(t, watches())
		a := driverPod("a", "n", "d1")
		run(a)
		w.addPod(a)
		configtest.Replace(t, w.store, chart)
		w.wrote("create 1, delete 1")
		require.Equal(t, 1, watches())
		configtest.Replace(t, w.store, "")
		w.wrote("delete 1")
		w.removePod("a")
		configtest.Replace(t, w.store, chart)
		w.wrote("")
		require.Equal(t, 2, watches())
	})
}
