package claims

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
)

// shutGate is a Gate that holds everything back until it opens.
type shutGate struct {
	opened atomic.Bool
	node   func(string)
}

func (g *shutGate) OnChange(node func(string)) { g.node = node }

func (g *shutGate) Check(*corev1.Node, *resourcev1.ResourceClaim, *resourcev1.DeviceRequestAllocationResult) error {
	if g.opened.Load() {
		return nil
	}
	return &plan.Pending{Failure: &plan.Failure{Reason: plan.ReasonDriver, Err: errors.New("other nodes are not ready")}, Timeout: 45 * time.Second}
}

// TestGate: a Pod whose devices are held back waits in silence and says why, and starts when the gate opens.
func TestGate(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pod := newPod("p", "c")
		w := idleWorld(t, template("d", ""), newNode("n"), pod, allocated("c", pod))
		gate := &shutGate{}
		w.gate = gate
		w.start()
		w.wrote("waiting p")
		require.Equal(t, "other nodes are not ready", w.controller.FailureOf([]resourcev1.ResourceClaimConsumerReference{consumer(pod)}))
		time.Sleep(44 * time.Second)
		w.wrote("")
		w.failures()

		gate.opened.Store(true)
		gate.node("n")
		w.wrote("prepare c, ready p")
		w.failures()
		w.settled()
	})
}

// TestGateThatStaysShut: a call that has timed out gets the kubelet's event, and is made again as after any failure. The
// new call tries for as long.
func TestGateThatStaysShut(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pod := newPod("p", "c")
		w := idleWorld(t, template("d", "")+configuration("{retryInterval: 60s}"), newNode("n"), pod, allocated("c", pod))
		gate := &shutGate{}
		w.gate = gate
		w.start()
		w.wrote("waiting p")
		time.Sleep(45 * time.Second)
		w.failures("other nodes are not ready")
		gate.node("n")
		time.Sleep(90 * time.Second) // the retry and its jitter
		w.failures()
		time.Sleep(45 * time.Second)
		w.failures("other nodes are not ready")
		time.Sleep(20 * time.Second) // the Pod waits for the next retry

		gate.opened.Store(true)
		gate.node("n")
		w.wrote("")
		time.Sleep(71 * time.Second)
		w.wrote("prepare c, ready p")
		w.settled()
	})
}
