package prepare

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// TestPrepareFaults has the API server refuse every write for a while, in each
// way, and for ten seconds not answer at all.
func TestPrepareFaults(t *testing.T) {
	t.Parallel()
	h := harness.New(t, cluster.Options{Config: harness.FastStages(t), Audit: true})
	proxy, kubeconfig := h.NewProxy()
	h.Kubeconfig = kubeconfig
	h.Sidecar()
	h.SceneOf("faults", harness.Driver, harness.GPUs(64), "")
	for _, fault := range []struct {
		name    string
		handler http.HandlerFunc
	}{
		{"conflict", harness.Answer(http.StatusConflict, metav1.StatusReasonConflict)},
		{"invalid", harness.Answer(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)},
		{"too-many", harness.Answer(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests)},
		{"internal", harness.Answer(http.StatusInternalServerError, metav1.StatusReasonInternalError)},
		{"silence", harness.HangUp},
	} {
		faulty(h, proxy, fault.name, fault.handler)
	}
}

// faulty has Pods come while the fault is on, and sees them run when it is over.
func faulty(h *harness.H, proxy *harness.Proxy, name string, fault http.HandlerFunc) {
	h.Helper()
	// often is more than retries that back off make of a Pod within the time, which is
	// the least that a fault lasts.
	const pods, often, lasts = 10, 20, 2 * time.Second
	before := proxy.Faults.Load()
	proxy.Fault.Store(&fault)
	began := time.Now()
	podName := func(i int) string { return fmt.Sprintf("%s-%d", name, i) }
	for i := range pods {
		h.CreatePod("faults", harness.NewPod(podName(i), "faults", harness.FromTemplate))
	}
	h.Eventually(harness.Patience, func() string {
		refused := proxy.Faults.Load() - before
		if refused < 2*pods || time.Since(began) < lasts {
			return fmt.Sprintf("%s: %d writes were refused", name, refused)
		}
		return ""
	})
	for i := range pods {
		require.False(h, harness.IsReady(h.Pod("faults", podName(i))))
	}
	proxy.Fault.Store(nil)
	refused := proxy.Faults.Load() - before
	require.Less(h, float64(refused), pods*often*time.Since(began).Seconds()/lasts.Seconds(), "%s: retries back off", name)
	for i := range pods {
		h.Running("faults", podName(i))
		require.Len(h, h.ClaimOf("faults", podName(i)).Status.Devices, 1)
		list, err := h.Client.CoreV1().Events("faults").List(h.Context(), metav1.ListOptions{
			FieldSelector: "involvedObject.name=" + podName(i) + ",reason=FailedPrepareDynamicResources",
		})
		require.NoError(h, err)
		require.LessOrEqual(h, len(list.Items), 1, "%s: one event per Pod and cause", name)
	}
}
