package claims

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/testing/claimstest"
)

// withDriverPod is a template whose driver is called what a Pod of it says.
const withDriverPod = `---
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: ResourcePoolTemplate
metadata: {name: chart}
spec:
  driver: '{{ .DriverPod.env.DRIVER }}'
  driverPod: {selector: {matchLabels: {app: driver}}}
  devices: [{name: gpu, count: 4}]
  claimStatus: {data: {version: '{{ .DriverPod.tag }}'}}
`

// pluginPod is a Pod that runs the plugin of driver d on the node n.
func pluginPod() *corev1.Pod {
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "drivers", Name: "plugin", Labels: map[string]string{"app": "driver"}, CreationTimestamp: now},
		Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{
			Name: "c", Image: "driver:v1", Env: []corev1.EnvVar{{Name: "DRIVER", Value: "d"}},
		}}},
		Status: corev1.PodStatus{
			Phase:             corev1.PodRunning,
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
		},
	}
}

// TestDriverPods: a driver is registered as long as its Pod has a socket.
func TestDriverPods(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(pod *corev1.Pod)
		failure string
	}{
		"running":   {func(*corev1.Pod) {}, ""},
		"not Ready": {func(pod *corev1.Pod) { pod.Status.Conditions[0].Status = corev1.ConditionFalse }, ""},
		"starting": {func(pod *corev1.Pod) {
			pod.Status = corev1.PodStatus{Phase: corev1.PodPending}
		}, "DRA driver d is not registered"},
		"elsewhere": {func(pod *corev1.Pod) { pod.Spec.NodeName = "m" }, "DRA driver d is not registered"},
		"being deleted": {func(pod *corev1.Pod) {
			pod.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		}, "DRA driver d is not registered"},
		"crashed": {func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
		}, "NodePrepareResources: rpc error: code = Unavailable desc = connection error: desc = \"transport: " +
			"Error while dialing: dial unix /var/lib/kubelet/plugins/d/dra.sock: connect: connection refused\""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				plugin, pod := pluginPod(), claimstest.NewPod("p", "c")
				test.change(plugin)
				w := newWorld(t, withDriverPod, claimstest.NewNode("n"), claimstest.NewNode("m"), plugin, pod, claimstest.Allocated("c", pod))
				if test.failure == "" {
					w.wrote("prepare c, ready p")
					require.JSONEq(t, `{"version": "v1"}`, w.data("c"))
					return
				}
				require.False(t, w.ready("p"))
				w.failures(test.failure)
			})
		})
	}
}

// TestDriverPodComes: the Pod is tried again as by the kubelet, and the entries stay when
// the plugin goes.
func TestDriverPodComes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pod := claimstest.NewPod("p", "c")
		w := newWorld(t, withDriverPod, claimstest.NewNode("n"), pod, claimstest.Allocated("c", pod))
		w.failures("DRA driver d is not registered")
		w.wrote("waiting p")
		w.Add(pluginPod())
		synctest.Wait()
		time.Sleep(2 * time.Minute)
		w.wrote("prepare c, ready p")
		w.Remove(pluginPod())
		w.settled()
		w.failures()
	})
}

// TestDriverPodsLate: no Pod is failed since the cache has no driver Pod yet.
func TestDriverPodsLate(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pod := claimstest.NewPod("p", "c")
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse}}
		w := idleWorld(t, withDriverPod, claimstest.NewNode("n"), pod, claimstest.Allocated("c", pod))
		w.Lags["pods"] = time.Hour
		w.start()
		w.failures("DRA driver d is not registered")
		w.wrote("")
		w.Add(pluginPod())
		time.Sleep(2 * time.Minute)
		w.wrote("prepare c, ready p")
	})
}
