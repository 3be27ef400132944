package claims

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
	"github.com/kwok-dra/kwok-dra/internal/claims/templates"
	"github.com/kwok-dra/kwok-dra/internal/observe"
)

// countingKubelets have no real drivers, and count the looks at Pods: each asks them for drivers.
type countingKubelets struct {
	flapping
	looks atomic.Int32
}

func (k *countingKubelets) AddDrivers(ofTemplates *templates.Driver, _ *corev1.Pod, _ *corev1.Node, _ func(string) bool) plan.Driver {
	k.looks.Add(1)
	return ofTemplates
}

// TestOwnWritesTakeNoLook: a Pod is prepared in one look, and the events of what was written for it cause none. Those of
// others do. Nothing is kept of an answer that the cache has seen.
func TestOwnWritesTakeNoLook(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := idleWorld(t, template("d", ""), newNode("n"))
		kubelets := &countingKubelets{}
		w.kubelets = kubelets
		w.start()
		w.Lags["pods"], w.Lags["resourceclaims"] = time.Second, time.Second // so the answer to a write comes before its event
		pod := newPod("p", "c")
		claim := allocated("c", pod)
		w.Add(claim)
		time.Sleep(time.Minute)
		w.Add(pod)
		time.Sleep(time.Minute)
		w.wrote("prepare c, ready p")
		require.EqualValues(t, 1, kubelets.looks.Load())
		require.Zero(t, w.controller.observer.states.podAnswers.Answer(observe.Key(pod)))
		require.Zero(t, w.controller.observer.states.claimAnswers.Answer(observe.Key(claim)))

		w.editPod("p", func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodRunning })
		time.Sleep(time.Minute)
		require.EqualValues(t, 2, kubelets.looks.Load())
		w.settled()
	})
}

// TestForeignWriteBesideAnOwn: a look that waits for the event of an own write is not lost.
func TestForeignWriteBesideAnOwn(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := idleWorld(t, template("d", ""), newNode("n"))
		kubelets := &countingKubelets{}
		w.kubelets = kubelets
		w.start()
		pod := newPod("p", "c")
		w.Add(allocated("c", pod))
		w.Lags["pods"] = time.Second
		w.Add(pod)
		time.Sleep(1500 * time.Millisecond) // prepared, and the cache does not show it yet
		w.wrote("prepare c, ready p")
		require.EqualValues(t, 1, kubelets.looks.Load())
		w.controller.pods.loop.Add(observe.Key(pod))
		time.Sleep(time.Minute)
		require.EqualValues(t, 2, kubelets.looks.Load())
		w.settled()
	})
}
