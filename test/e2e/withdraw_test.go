package e2e

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/cluster"
)

// TestWithdraw has no claim controller: claims stay allocated when their Pods are
// gone, and the sidecar withdraws its entries, and only those.
func TestWithdraw(t *testing.T) {
	t.Parallel()
	const foreign = "foreign.example.com"
	h := newHarness(t, cluster.Options{Config: fastStages(t), Audit: true})
	process := h.sidecar()
	h.scene("left", "")
	h.foreignSlice("left", foreign)
	h.deviceClass("left-foreign", foreign)
	h.preparedBeside("stays", foreign)
	require.NoError(t, h.cluster.StopComponent(t.Context(), cluster.ControllerManager))

	ends := map[string]func(pod string){
		"deleted":       func(pod string) { h.deletePod("left", pod, 1) },
		"force-deleted": func(pod string) { h.deletePod("left", pod, 0) },
		"failed":        func(pod string) { h.patchPod("left", pod, `{"status": {"phase": "Failed"}}`, "status") },
	}
	for name := range ends {
		h.preparedBeside(name, foreign)
	}
	h.createClaim("left", "while-down", claimSpec("left"))
	h.createPod("left", newPod("while-down", "left", "while-down"))
	h.entries("left", "while-down", 1)
	for name, end := range ends {
		end(name)
	}
	for name := range ends {
		require.Equal(t, foreign, h.entries("left", name, 1).Status.Devices[0].Driver, name)
	}
	require.Len(t, h.claim("left", "stays").Status.Devices, 2)

	t.Log("what ends while the sidecar is down is withdrawn when it comes back, and nothing else is written")
	require.NoError(t, process.Stop())
	h.deletePod("left", "while-down", 0)
	before := len(h.writes(""))
	h.sidecar()
	h.entries("left", "while-down", 0)
	require.Len(t, h.writes("")[before:], 1)

	t.Log("a node that goes takes the devices with it")
	h.deleteNode("left")
	require.Equal(t, foreign, h.entries("left", "stays", 1).Status.Devices[0].Driver)
}

// preparedBeside has a Pod run whose claim has an entry of each driver.
func (h *harness) preparedBeside(name, foreign string) {
	h.Helper()
	h.createClaim("left", name, claimSpec("left", "left-foreign"))
	h.createPod("left", newPod(name, "left", name))
	h.running("left", name)
	h.reportForeign("left", name, foreign)
	h.entries("left", name, 2)
}

// TestWhileDown has Pods come, go and fail while the sidecar is down, as a kubelet
// that restarts would find them.
func TestWhileDown(t *testing.T) {
	t.Parallel()
	h := newHarness(t, cluster.Options{Config: fastStages(t), Audit: true})
	h.configure("configuration", knobs)
	process := h.sidecar()
	h.scene("down", "")
	labelled := func(name, label string) {
		pod := newPod(name, "down", fromTemplate)
		pod.Labels = map[string]string{label: "true"}
		pod.Finalizers = []string{"example.com/keep"}
		h.createPod("down", pod)
		h.podEventually("down", name, func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" })
	}
	labelled("failing", "fail")
	h.failedPrepare("down", "failing")
	labelled("deleted", "hold")
	h.createPod("down", newPod("runs", "down", fromTemplate))
	h.running("down", "runs")
	require.NoError(t, process.Stop())

	before := len(h.writes(""))
	h.createPod("down", newPod("created", "down", fromTemplate))
	h.deletePod("down", "deleted", 1)
	h.patchPod("down", "deleted", `{"metadata": {"labels": null}}`)
	h.patchPod("down", "failing", `{"metadata": {"labels": null}}`)
	claim := h.claimOf("down", "deleted").Name
	process = h.sidecar()
	for _, pod := range []string{"created", "failing"} {
		h.running("down", pod)
		require.Len(t, h.claimOf("down", pod).Status.Devices, 1)
	}
	settled(h)
	require.Empty(t, h.writesTo("resourceclaims", claim), "a deleted Pod is not prepared")
	require.Len(t, h.writes("")[before:], 2*2, "two Pods were owed a claim and a condition each")
	require.InDelta(t, 3, h.metric(process, "kwok_dra_prepared_claims"), 0)
	require.InDelta(t, 3, h.metric(process, "kwok_dra_claim_prepares_total"), 0)
	h.deletePod("down", "runs", 0)
	h.gone("down", "runs")
	h.eventually(patience, func() string {
		if n := h.metric(process, "kwok_dra_claim_unprepares_total"); n != 1 {
			return fmt.Sprintf("%v claims were unprepared, want 1", n)
		}
		return ""
	})
}

// TestPreparingSurvivesKills kills the sidecar while 1,000 Pods start: all run,
// and each claim is prepared once.
func TestPreparingSurvivesKills(t *testing.T) {
	t.Parallel()
	const pods, kills = 1000, 3
	h := newHarness(t, cluster.Options{Config: fastStages(t), Audit: true})
	h.configure("kill", template("kill", driver, "kill", gpus(8)))
	h.createNodes("kill", pods/8)
	h.namespace("kill", driver)
	process := h.sidecar()
	var creating sync.WaitGroup
	for worker := range 4 {
		creating.Go(func() {
			for i := worker; i < pods; i += 4 {
				_, err := h.client.CoreV1().Pods("kill").Create(t.Context(), newPod(fmt.Sprint("pod-", i), "kill", fromTemplate), metav1.CreateOptions{})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for kill := range kills {
		h.runAtLeast("kill", (kill+1)*pods/(kills+2))
		require.NoError(t, process.Kill())
		require.Less(t, h.runningPods("kill"), pods, "the sidecar was killed too late to prove anything")
		process = h.sidecar()
	}
	creating.Wait()
	h.runAtLeast("kill", pods)
	writes := map[string]int{}
	for _, event := range h.writes("resourceclaims") {
		// Of a request that a kill has cut off it is not known whether it counts.
		if event.ResponseStatus.Code < 300 {
			writes[event.ObjectRef.Name]++
		}
	}
	claims, err := h.client.ResourceV1().ResourceClaims("kill").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, claims.Items, pods)
	for _, claim := range claims.Items {
		require.Len(t, claim.Status.Devices, 1, claim.Name)
		require.LessOrEqual(t, writes[claim.Name], 1, claim.Name)
	}
}

// runAtLeast waits until so many Pods run.
func (h *harness) runAtLeast(namespace string, pods int) {
	h.Helper()
	h.eventually(fleetPatience, func() string {
		if n := h.runningPods(namespace); n < pods {
			return fmt.Sprintf("%d pods run", n)
		}
		return ""
	})
}

func (h *harness) runningPods(namespace string) int {
	h.Helper()
	list, err := h.client.CoreV1().Pods(namespace).List(h.Context(), metav1.ListOptions{FieldSelector: "status.phase=Running"})
	require.NoError(h, err)
	return len(list.Items)
}
