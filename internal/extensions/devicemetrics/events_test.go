package devicemetrics

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kwok-dra/kwok-dra/internal/controller/shard"
	"github.com/kwok-dra/kwok-dra/internal/testing/apitest"
	"github.com/kwok-dra/kwok-dra/internal/testing/claimstest"
	"github.com/kwok-dra/kwok-dra/internal/testing/runtest"
)

func TestMistakesAreTold(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pod := running("p", usageOf("much", "0.5"), "a")
		w := newWorld(t, claimstest.NewNode("n"), publish("gpu.nvidia.com", nvidiaDevices), allocated("a", "gpu.nvidia.com", "gpu-0", pod))
		w.Add(pod)
		const percent = `must be a percentage from 0 to 100, or ramp(FROM, TO, DURATION), wave(MIN, MAX, PERIOD) or noise(MEAN, SPREAD) of these, such as 75 or wave(20, 90, 5m)`
		const memory = `must be a quantity or a percentage with its sign, or ramp(FROM, TO, DURATION), wave(MIN, MAX, PERIOD) or noise(MEAN, SPREAD) of these, such as 40Gi, 50% or ramp(0, 60Gi, 10m)`
		require.Equal(t, []string{`Warning InvalidUsage pod default/p: annotation dra.kwok.x-k8s.io/usage-gpu "much": "much" is no percentage from 0 to 100: ` + percent +
			`; annotation dra.kwok.x-k8s.io/usage-memory "0.5": "0.5" is less than a byte; as a part of the memory it is "50%": ` + memory + `; its devices are idle in that respect`}, w.took())
		require.Equal(t, "0", w.scrape("/metrics/devices")[`DCGM_FI_DEV_GPU_UTIL{`+gpu0+ofPod+`}`])
		apitest.Edit(w.Server, "default", "p", func(pod *corev1.Pod) { pod.Labels = map[string]string{"new": "label"} })
		require.Empty(t, w.took(), "the mistake is the same")
		apitest.Edit(w.Server, "default", "p", func(pod *corev1.Pod) { pod.Annotations = usageOf("75", "0.25") })
		require.Len(t, w.took(), 1)
		apitest.Edit(w.Server, "default", "p", func(pod *corev1.Pod) { pod.Annotations = usageOf("75", "25%") })
		require.Empty(t, w.took())
	})
}

// TestMistakesAreToldOnce: a Pod that is seen before its node is told once the node is there, and a restart tells nothing.
func TestMistakesAreToldOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, running("p", usageOf("much", "25%"), "a"))
		require.Empty(t, w.took(), "nobody knows that the node is fake")
		w.Add(claimstest.NewNode("n"))
		require.Len(t, w.took(), 1)
		stop := w.runReporter(newCaches(t, w.Server), nil)
		require.Empty(t, w.took())
		stop()
	})
}

// TestMistakesOnLeasedNodes are told by the replica whose kwok has taken the node, however late that is.
func TestMistakesOnLeasedNodes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := &world{Server: apitest.New(claimstest.NewNode("n"), running("p", usageOf("much", "25%"), "a")), t: t, taken: sets.New[string]()}
		leases := apitest.New()
		owner := shard.New(shard.Options{Mode: shard.Lease, Client: leases, Host: "h", Namespace: "default", Name: "l"})
		w.runReporter(newCaches(t, w.Server), owner)
		runtest.UntilEnd(runtest.QuietContext(t), t, owner.Run)
		time.Sleep(time.Minute)
		require.Empty(t, w.took())
		leases.Add(&coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: "n"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: new("h_1")},
		})
		time.Sleep(time.Minute)
		require.Len(t, w.took(), 1)
	})
}

// TestNameOfMistake is one that the API server accepts, even of the longest Pod.
func TestNameOfMistake(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"p", strings.Repeat("a", 253), strings.Repeat("a", 199) + "-b"} {
		event := newMistakeEvent(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}, "wrong")
		require.Empty(t, validation.IsDNS1123Subdomain(event.Name), event.Name)
	}
}
