package claims

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kwok-dra/kwok-dra/internal/extensions/devicehealth"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// run is what KWOK's Stages do: they write the whole list of containers.
func run(pod *corev1.Pod) {
	pod.Status.Phase = corev1.PodRunning
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", Ready: true}}
}

func (w *world) health() []corev1.ResourceStatus {
	return w.pod("p").Status.ContainerStatuses[0].AllocatedResourcesStatus
}

func TestHealthIsShownOnceRunning(t *testing.T) {
	for name, test := range map[string]struct{ documents, want string }{
		"faithful":             {configuration(faithful), "health p"},
		"minimal":              {"", ""},
		"minimal with reports": {"  health: Report\n", "health p"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := prepared(t, test.documents, false)
				w.wrote("")
				w.editPod("p", run)
				w.wrote(test.want)
				w.settled()
				w.editPod("p", run)
				w.wrote(test.want) // the list was replaced
				w.editPod("p", func(pod *corev1.Pod) { pod.Labels = map[string]string{"a": "b"} })
				w.settled()
				w.stop()
				w.start()
				w.settled()
			})
		})
	}
}

// TestHealthIsShownWhenPrepared: Stages that keep the statuses of containers leave nothing to write once they run.
func TestHealthIsShownWhenPrepared(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := prepared(t, configuration(faithful), false)
		require.Equal(t, statusesOf("claim:c d/n/gpu-0=Unknown"), w.health())
		require.NotNil(t, w.pod("p").Status.ContainerStatuses[0].State.Waiting)
		w.editPod("p", func(pod *corev1.Pod) {
			pod.Status.Phase = corev1.PodRunning
			pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
		})
		w.settled()
	})
}

// TestContainersThatChangeWhilePrepared: the statuses of containers that someone else writes meanwhile are not overwritten.
func TestContainersThatChangeWhilePrepared(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pod := newPod("p", "c")
		w := idleWorld(t, template("d", "")+configuration(faithful), newNode("n"), pod, allocated("c", pod))
		w.Lags["pods"] = time.Minute // so the plan is made of the answer to the own write
		isFirst := true
		w.Refuse(func(call string) error {
			if call == "ready p" && isFirst {
				isFirst = false
				return apierrors.NewConflict(corev1.Resource("pods"), "p", errBroken)
			}
			return nil
		})
		w.start()
		time.Sleep(10 * time.Minute)
		w.wrote("waiting p, prepare c, ready p, ready p")
		require.Equal(t, statusesOf("claim:c d/n/gpu-0=Unknown"), w.health())
		w.settled()
	})
}

// TestHealthOfAnotherDriver does not matter to Pods that do not use it.
func TestHealthOfAnotherDriver(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := prepared(t, template("e", "  health: Report\n"), false)
		w.editPod("p", run)
		w.settled()
	})
}

func TestHealthFollowsTaints(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := prepared(t, "  health: Report\n", false)
		w.editPod("p", run)
		w.wrote("health p")
		require.Equal(t, statusesOf("claim:c d/n/gpu-0=Healthy"), w.health())
		w.editNode("n", func(node *corev1.Node) { node.Annotations[v1alpha1.DeviceTaintsAnnotation] = "gpu-0:xid=79:NoExecute" })
		w.wrote("health p")
		require.Equal(t, statusesOf("claim:c d/n/gpu-0=Unhealthy"), w.health())
		w.settled()
		w.editNode("n", func(node *corev1.Node) { node.Annotations[v1alpha1.DeviceTaintsAnnotation] = "gpu-1:xid=79:NoExecute" })
		w.wrote("health p")
		require.Equal(t, statusesOf("claim:c d/n/gpu-0=Healthy"), w.health())
		w.editNode("n", func(node *corev1.Node) { node.Labels = map[string]string{"a": "b"} })
		w.settled()
	})
}

// TestHealthThatTheServerDrops is not written again and again.
func TestHealthThatTheServerDrops(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := prepared(t, configuration(faithful), true)
		w.dropHealth = true
		w.editPod("p", run)
		w.wrote("health p")
		w.editPod("p", func(pod *corev1.Pod) { pod.Labels = map[string]string{"a": "b"} })
		w.editPod("q", run)
		w.settled()
	})
}

// TestHealthThatTheServerKeepsLater: an API server whose feature gate is turned on is asked again, at a slow pace, and then all
// Pods show their health without being edited.
func TestHealthThatTheServerKeepsLater(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := prepared(t, configuration(faithful), true)
		w.dropHealth = true
		w.editPod("p", run)
		w.editPod("q", run)
		w.takeCalls(false)
		time.Sleep(10 * devicehealth.RetryInterval)
		calls := w.takeCalls(false)
		require.NotEmpty(t, calls)
		require.LessOrEqual(t, len(calls), 20)
		w.Mu.Lock()
		w.dropHealth = false
		w.Mu.Unlock()
		time.Sleep(devicehealth.RetryInterval)
		w.counted(map[string]int{"health p": 1, "health q": 1})
		require.Equal(t, statusesOf("claim:c d/n/gpu-0=Unknown"), w.health())
		w.settled()
	})
}

// TestHealthOfContainersThatChange: the patch is refused, and the event of the
// change brings the Pod back.
func TestHealthOfContainersThatChange(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := prepared(t, configuration(faithful), false)
		w.Refuse(failing(1, "health p", apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), "p", nil)))
		w.editPod("p", run)
		w.wrote("health p")
		w.settled()
		w.editPod("p", func(pod *corev1.Pod) { pod.Status.ContainerStatuses[0].RestartCount++ })
		w.wrote("health p")
		w.settled()
		w.failures()
	})
}

// TestHealthOfPodThatHasEnded is of no interest.
func TestHealthOfPodThatHasEnded(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := prepared(t, configuration(faithful), false)
		w.editPod("p", func(pod *corev1.Pod) {
			run(pod)
			pod.Status.Phase = corev1.PodSucceeded
		})
		w.wrote("unprepared p")
		w.deallocate("c")
		w.settled()
	})
}
