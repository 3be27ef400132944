package prepare

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// TestWithdraw has no claim controller: claims stay allocated when their Pods are
// gone, and the sidecar withdraws its entries, and only those.
func TestWithdraw(t *testing.T) {
	t.Parallel()
	const foreign = "foreign.example.com"
	h := harness.New(t, cluster.Options{Config: harness.FastStages(t), Audit: true})
	process := h.Sidecar()
	h.Scene("left", "")
	h.ForeignSlice("left", foreign)
	h.DeviceClass("left-foreign", foreign)
	preparedBeside(h, "stays", foreign)
	require.NoError(t, h.Cluster.StopComponent(t.Context(), cluster.ControllerManager))

	ends := map[string]func(pod string){
		"deleted":       func(pod string) { h.DeletePod("left", pod, 1) },
		"force-deleted": func(pod string) { h.DeletePod("left", pod, 0) },
		"failed":        func(pod string) { h.PatchPod("left", pod, `{"status": {"phase": "Failed"}}`, "status") },
	}
	for name := range ends {
		preparedBeside(h, name, foreign)
	}
	h.CreateClaim("left", "while-down", harness.ClaimSpec("left"))
	h.CreatePod("left", harness.NewPod("while-down", "left", "while-down"))
	h.Entries("left", "while-down", 1)
	for name, end := range ends {
		end(name)
	}
	for name := range ends {
		require.Equal(t, foreign, h.Entries("left", name, 1).Status.Devices[0].Driver, name)
	}
	require.Len(t, h.Claim("left", "stays").Status.Devices, 2)

	t.Log("what ends while the sidecar is down is withdrawn when it comes back, and nothing else is written")
	require.NoError(t, process.Stop())
	h.DeletePod("left", "while-down", 0)
	before := len(lasting(h))
	h.Sidecar()
	h.Entries("left", "while-down", 0)
	requireWrites(h, before+1, func() []cluster.AuditEvent { return lasting(h) })

	t.Log("a node that goes takes the devices with it")
	h.DeleteNode("left")
	require.Equal(t, foreign, h.Entries("left", "stays", 1).Status.Devices[0].Driver)
}

// preparedBeside has a Pod run whose claim has an entry of each driver.
func preparedBeside(h *harness.H, name, foreign string) {
	h.Helper()
	h.CreateClaim("left", name, harness.ClaimSpec("left", "left-foreign"))
	h.CreatePod("left", harness.NewPod(name, "left", name))
	h.Running("left", name)
	h.ReportForeign("left", name, foreign)
	h.Entries("left", name, 2)
}

// TestWhileDown has Pods come, go and fail while the sidecar is down, as a kubelet
// that restarts would find them.
func TestWhileDown(t *testing.T) {
	t.Parallel()
	h := harness.New(t, cluster.Options{Config: harness.FastStages(t), Audit: true})
	h.Configure("configuration", harness.Knobs)
	process := h.Sidecar()
	h.Scene("down", "")
	labelled := func(name, label string) {
		pod := harness.NewPod(name, "down", harness.FromTemplate)
		pod.Labels = map[string]string{label: "true"}
		pod.Finalizers = []string{"example.com/keep"}
		h.CreatePod("down", pod)
		h.PodEventually("down", name, func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" })
	}
	labelled("failing", "fail")
	h.FailedPrepare("down", "failing")
	labelled("deleted", "hold")
	h.CreatePod("down", harness.NewPod("runs", "down", harness.FromTemplate))
	h.Running("down", "runs")
	require.NoError(t, process.Stop())

	before := len(lasting(h))
	h.CreatePod("down", harness.NewPod("created", "down", harness.FromTemplate))
	h.DeletePod("down", "deleted", 1)
	h.PatchPod("down", "deleted", `{"metadata": {"labels": null}}`)
	h.PatchPod("down", "failing", `{"metadata": {"labels": null}}`)
	claim := h.ClaimOf("down", "deleted").Name
	process = h.Sidecar()
	for _, pod := range []string{"created", "failing"} {
		h.Running("down", pod)
		require.Len(t, h.ClaimOf("down", pod).Status.Devices, 1)
	}
	harness.Settled(h)
	require.Empty(t, h.WritesTo("resourceclaims", claim), "a deleted Pod is not prepared")
	require.Len(t, lasting(h)[before:], 2*2, "two Pods were owed a claim and a condition each")
	require.InDelta(t, 3, h.Metric(process, "kwok_dra_prepared_claims"), 0)
	require.InDelta(t, 3, h.Metric(process, "kwok_dra_claim_prepares_total"), 0)
	h.DeletePod("down", "runs", 0)
	h.Gone("down", "runs")
	h.Eventually(harness.Patience, func() string {
		if n := h.Metric(process, "kwok_dra_claim_unprepares_total"); n != 1 {
			return fmt.Sprintf("%v claims were unprepared, want 1", n)
		}
		return ""
	})
}

// lasting are the sidecar's writes but for events, of which one may be under way when it is stopped.
func lasting(h *harness.H) []cluster.AuditEvent {
	h.Helper()
	return slices.DeleteFunc(h.Writes(""), func(event cluster.AuditEvent) bool { return event.ObjectRef.Resource == "events" })
}

// TestPreparingSurvivesKills kills the sidecar again and again while Pods start,
// each time while it waits for answers to what it has written: all run, and each
// claim is prepared once.
func TestPreparingSurvivesKills(t *testing.T) {
	t.Parallel()
	const pods, kills = 200, 3
	h := harness.New(t, cluster.Options{Config: harness.FastStages(t), Audit: true})
	h.Configure("kill", harness.Template("kill", harness.Driver, "kill", harness.GPUs(8)))
	h.CreateNodes("kill", pods/8)
	h.Namespace("kill", harness.Driver)
	proxy, kubeconfig := h.NewProxy()
	h.Kubeconfig = kubeconfig
	waiting := proxy.LoseAnswers(pods / (kills + 2))
	process := h.Sidecar()
	creating := createPods(h, "kill", pods)
	for kill := range kills {
		h.Eventually(harness.Patience, func() string {
			if waiting() == 0 {
				return fmt.Sprintf("%d Pods run, and no answer is lost", runningPods(h, "kill"))
			}
			return ""
		})
		require.NoError(t, process.Kill())
		require.Less(t, runningPods(h, "kill"), pods, "the sidecar was killed too late to prove anything")
		proxy.Fault.Store(nil)
		if kill+1 < kills {
			waiting = proxy.LoseAnswers(pods / (kills + 2))
		}
		process = h.Sidecar()
	}
	creating.Wait()
	runAtLeast(h, "kill", pods)
	requirePreparedOnce(h, "kill", pods)
}

// createPods creates Pods with a claim each, four at a time. The returned group
// ends with the last.
func createPods(h *harness.H, namespace string, pods int) *sync.WaitGroup {
	var creating sync.WaitGroup
	for worker := range 4 {
		creating.Go(func() {
			for i := worker; i < pods; i += 4 {
				_, err := h.Client.CoreV1().Pods(namespace).Create(h.Context(), harness.NewPod(fmt.Sprint("pod-", i), namespace, harness.FromTemplate), metav1.CreateOptions{})
				if err != nil {
					h.Error(err)
					return
				}
			}
		})
	}
	return &creating
}

// requirePreparedOnce requires that each claim is prepared and was written once.
func requirePreparedOnce(h *harness.H, namespace string, pods int) {
	h.Helper()
	writes := map[string]int{}
	for _, event := range h.Writes("resourceclaims") {
		// Of a request that a kill has cut off it is not known whether it counts.
		if event.ResponseStatus.Code < 300 {
			writes[event.ObjectRef.Name]++
		}
	}
	claims, err := h.Client.ResourceV1().ResourceClaims(namespace).List(h.Context(), metav1.ListOptions{})
	require.NoError(h, err)
	require.Len(h, claims.Items, pods)
	for _, claim := range claims.Items {
		require.Len(h, claim.Status.Devices, 1, claim.Name)
		require.LessOrEqual(h, writes[claim.Name], 1, claim.Name)
	}
}

// runAtLeast waits until so many Pods run.
func runAtLeast(h *harness.H, namespace string, pods int) {
	h.Helper()
	h.Eventually(harness.FleetPatience, func() string {
		if n := runningPods(h, namespace); n < pods {
			return fmt.Sprintf("%d pods run", n)
		}
		return ""
	})
}

func runningPods(h *harness.H, namespace string) int {
	h.Helper()
	list, err := h.Client.CoreV1().Pods(namespace).List(h.Context(), metav1.ListOptions{FieldSelector: "status.phase=Running"})
	require.NoError(h, err)
	return len(list.Items)
}
