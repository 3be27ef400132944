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

// heldFor is a Gate that holds everything back, and fails after a time.
type heldFor struct {
	until  time.Time
	opened atomic.Bool
	node   func(string)
}

func (g *heldFor) OnChange(node func(string)) { g.node = node }

func (g *heldFor) Check(*corev1.Pod, *corev1.Node, *resourcev1.ResourceClaim, *resourcev1.DeviceRequestAllocationResult) error {
	failure := &plan.Failure{Reason: plan.ReasonDriver, Err: errors.New("other nodes are not ready")}
	switch wait := time.Until(g.until); {
	case g.opened.Load():
		return nil
	case wait > 0:
		return &plan.Pending{Failure: failure, Wait: wait}
	}
	return failure
}

// TestGate: a Pod whose devices are held back waits in silence and says why, and starts when the gate opens.
func TestGate(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pod := newPod("p", "c")
		w := idleWorld(t, template("d", ""), newNode("n"), pod, allocated("c", pod))
		gate := &heldFor{until: time.Now().Add(45 * time.Second)}
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

// TestGateThatStaysShut: in the end the Pod gets the kubelet's event, and is tried again as after any failure.
func TestGateThatStaysShut(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pod := newPod("p", "c")
		w := idleWorld(t, template("d", ""), newNode("n"), pod, allocated("c", pod))
		gate := &heldFor{until: time.Now().Add(45 * time.Second)}
		w.gate = gate
		w.start()
		w.wrote("waiting p")
		time.Sleep(45 * time.Second)
		w.wrote("")
		w.failures("other nodes are not ready")

		gate.opened.Store(true)
		gate.node("n")
		w.wrote("")
		time.Sleep(2 * time.Minute)
		w.wrote("prepare c, ready p")
		w.settled()
	})
}
