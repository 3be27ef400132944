package claims

import (
	"slices"
	"sync/atomic"

	resourcev1 "k8s.io/api/resource/v1"
)

// ledger keeps the account of which claims are prepared, as the kubelet's checkpoint
// does, and counts them.
type ledger struct {
	states  *states
	metrics *metrics
	// changes counts what changes Allocations.
	changes atomic.Uint64
}

// markPrepared notes that claims are prepared for a Pod.
func (l *ledger) markPrepared(state *podState, claims ...*resourcev1.ResourceClaim) {
	for _, claim := range claims {
		if slices.Contains(state.claims, claim.UID) {
			continue
		}
		state.claims = append(state.claims, claim.UID)
		if !l.states.use(claim.UID, state.uid) {
			continue
		}
		l.changes.Add(1)
		if !state.standby {
			l.metrics.prepares.Inc()
		}
	}
}

// markUnprepared notes that no claim is prepared any more for a Pod, nor for those
// that had its name before.
func (l *ledger) markUnprepared(state *podState) {
	for ; state != nil; state = state.former {
		for _, claim := range state.claims {
			if !l.states.unuse(claim, state.uid) {
				continue
			}
			l.changes.Add(1)
			if !state.standby {
				l.metrics.unprepares.Inc()
			}
		}
		state.claims = nil
	}
}
