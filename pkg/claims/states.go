package claims

import (
	"slices"
	"sync"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/pkg/claims/plan"
	"github.com/kwok-dra/kwok-dra/pkg/expectations"
)

// states is what is remembered of Pods and claims between two reconciliations. All
// of it can be lost: it keeps writes from being repeated before the cache has
// seen them, and failures from being retried too early.
type states struct {
	mu     sync.Mutex
	pods   map[types.NamespacedName]*podState
	claims map[types.UID]*claimState
	// users maps claims to the Pods that they are prepared for, as the kubelet's
	// checkpoint does.
	users map[types.UID][]types.UID
}

// podState belongs to the worker that has the Pod's key.
type podState struct {
	uid types.UID
	// former is the state of the Pod that had the name before, until it is released.
	former *podState
	// bound is when the Pod was first seen bound, or zero if that is not known.
	bound time.Time
	// unseen is of the last write. Until the cache has seen it, what the cache says of the
	// Pod is out of date.
	unseen expectations.Unseen[expectations.Version]
	last   *plan.LastFailure
	// claims are those that are prepared for the Pod.
	claims []types.UID
	// ended says that the Pod had ended when they were released. Where nobody tells so
	// in its status, it looks prepared as long as it is there.
	ended bool
	// standby says that another replica prepares them, and counts that.
	standby bool
}

// claimState is locked while the claim is written, so that Pods that share a
// claim have it written once.
type claimState struct {
	sync.Mutex
	// unseen has the answer to the last write, or to the read after a conflict: the newest
	// version of the claim as long as the cache is older.
	unseen expectations.Unseen[*resourcev1.ResourceClaim]
	// node is the fake node that the claim was last seen allocated on. Where only some
	// nodes are listed, it tells a node that has gone from someone else's.
	node   string
	memory plan.ClaimMemory
}

func newStates() *states {
	return &states{
		pods:   map[types.NamespacedName]*podState{},
		claims: map[types.UID]*claimState{},
		users:  map[types.UID][]types.UID{},
	}
}

// bound notes when a Pod was bound to its node.
func (s *states) bound(key types.NamespacedName, uid types.UID, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current(key, uid).bound = now
}

// boundAt is when a Pod was bound, or zero if that is not known.
func (s *states) boundAt(state *podState) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return state.bound
}

// pod returns the state of a Pod, and, once, that of a Pod that had its name
// before.
func (s *states) pod(key types.NamespacedName, uid types.UID) (current, former *podState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	current = s.current(key, uid)
	former, current.former = current.former, nil
	return current, former
}

func (s *states) current(key types.NamespacedName, uid types.UID) *podState {
	if state := s.pods[key]; state == nil || state.uid != uid {
		s.pods[key] = &podState{uid: uid, former: state}
	}
	return s.pods[key]
}

// forgetPod drops the state of a Pod and returns it.
func (s *states) forgetPod(key types.NamespacedName) *podState {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.pods[key]
	delete(s.pods, key)
	return state
}

func (s *states) claim(uid types.UID) *claimState {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.claims[uid] == nil {
		s.claims[uid] = &claimState{}
	}
	return s.claims[uid]
}

func (s *states) forgetClaim(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.claims, uid)
}

// use notes that a claim is prepared for a Pod, and reports whether it is the
// claim's first one.
func (s *states) use(claim, pod types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.users[claim], pod) {
		s.users[claim] = append(s.users[claim], pod)
	}
	return len(s.users[claim]) == 1
}

// unuse notes that a claim is no longer prepared for a Pod, and reports whether it
// was the claim's last one.
func (s *states) unuse(claim, pod types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.users[claim], pod) {
		return false
	}
	s.users[claim] = slices.DeleteFunc(s.users[claim], func(user types.UID) bool { return user == pod })
	if len(s.users[claim]) > 0 {
		return false
	}
	delete(s.users, claim)
	return true
}

// uses reports whether a claim is prepared for a Pod.
func (s *states) uses(claim, pod types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.users[claim], pod)
}

// isPrepared reports whether a claim is prepared for any Pod.
func (s *states) isPrepared(claim types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.users[claim]) > 0
}

// prepared counts the claims that are prepared for a Pod.
func (s *states) prepared() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.users)
}
