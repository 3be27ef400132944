package claims

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kwok-dra/kwok-dra/pkg/claims/plan"
	"github.com/kwok-dra/kwok-dra/pkg/expectations"
	"github.com/kwok-dra/kwok-dra/pkg/observe"
)

// states is what is remembered of Pods and claims between two reconciliations. All
// of it can be lost: it keeps writes from being repeated before the cache has
// seen them, and failures from being retried too early.
type states struct {
	metrics *metrics
	// changes counts what changes Pods, claims, and what is known of both.
	changes atomic.Uint64
	// pods maps the keys of Pods to their podState, claims the UIDs of claims to their
	// claimState, and bound the keys of Pods to their boundPod.
	pods, claims, bound sync.Map
	// podWrites and claimWrites have Pods and claims with writes that the cache has not seen.
	podWrites, claimWrites expectations.Deadlines[types.NamespacedName]
	// restore has the time of the last restore of etcd, or zero.
	restore atomic.Int64

	mu sync.Mutex
	// users are of claims that are prepared, as in the kubelet's checkpoint.
	users map[types.UID]claimUsers
	// waiting maps Pods whose claims are not prepared yet to why.
	waiting map[types.UID]waiting
}

// waiting is why the claims of a Pod are not prepared yet: the last failure, or that
// there has been none.
type waiting struct {
	pod             types.NamespacedName
	reason, failure string
	// retry is when it is tried again after a failure.
	retry time.Time
}

// preparing is the reason of a Pod for which nothing has failed.
const preparing = "preparing"

// claimUsers are the Pods that a claim is prepared for.
type claimUsers struct {
	pods []types.UID
	// drivers are those of the claim's devices.
	drivers driverNames
}

// boundPod says when a Pod was first seen bound. It is not known of those that were there
// at the start.
type boundPod struct {
	uid types.UID
	at  time.Time
}

// podState belongs to the worker that has the Pod's key.
type podState struct {
	uid types.UID
	// unseen is of the last write. Until the cache has seen it, what the cache says of the
	// Pod is out of date.
	unseen expectations.Unseen[expectations.Version]
	memory plan.PodMemory
	// claims are those that are prepared for the Pod, one of each name.
	claims []preparedClaim
	// standby says that another replica prepares them, and counts that.
	standby bool
	// operation is under way.
	operation kubeletOperation
	// unprepareEvent is the last event of a failure to unprepare the claims.
	unprepareEvent toldFailure
	// pending is what the Pod was told while no configuration was in force.
	pending string
}

// toldFailure is a failure of which an event tells, and since when.
type toldFailure struct {
	message string
	at      time.Time
}

// preparedClaim is a claim that is prepared for a Pod.
type preparedClaim struct {
	name string
	uid  types.UID
}

// claimState is locked while the claim is written, so that Pods that share a
// claim have it written once.
type claimState struct {
	sync.Mutex
	// unseen has the answer to the last write, or to the read after a conflict: the newest
	// version of the claim as long as the cache is older.
	unseen expectations.Unseen[*resourcev1.ResourceClaim]
	memory plan.ClaimMemory
}

func newStates() *states {
	s := &states{users: map[types.UID]claimUsers{}, waiting: map[types.UID]waiting{}}
	s.metrics = newMetrics(s.countPrepared, s.waitingPods)
	return s
}

// recordReady notes that a Pod's containers can be started.
func (s *states) recordReady(key types.NamespacedName, uid types.UID) {
	s.forgetWaiting(uid)
	if bound, known := s.bound.Load(key); known && bound.(boundPod).uid == uid {
		s.metrics.latency.Observe(time.Since(bound.(boundPod).at).Seconds())
	}
}

// recordWaiting notes that a Pod waits for its claims. A failure stays known while it does.
func (s *states) recordWaiting(key types.NamespacedName, uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.waiting[uid]; !known {
		s.waiting[uid] = waiting{pod: key, reason: preparing}
	}
}

// recordFailure notes why preparing the claims of a Pod fails, and when it is tried again.
func (s *states) recordFailure(key types.NamespacedName, uid types.UID, failure *plan.Failure, retry time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting[uid].failure != failure.Error() {
		s.changes.Add(1)
	}
	s.waiting[uid] = waiting{key, failure.Reason, failure.Error(), retry}
}

// forgetWaiting notes that a Pod no longer waits.
func (s *states) forgetWaiting(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting[uid].failure != "" {
		s.changes.Add(1)
	}
	delete(s.waiting, uid)
}

// waitingPods counts the Pods that wait, by reason.
func (s *states) waitingPods() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := map[string]int{preparing: 0}
	for _, why := range s.waiting {
		counts[why.reason]++
	}
	return counts
}

// failureOf is why preparing fails for one of the Pods that a claim is reserved for, or
// is empty.
func (s *states) failureOf(consumers []resourcev1.ResourceClaimConsumerReference) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, consumer := range consumers {
		if failure := s.waiting[consumer.UID].failure; failure != "" {
			return failure
		}
	}
	return ""
}

// podStateOf returns the state of a Pod.
func (s *states) podStateOf(key types.NamespacedName, uid types.UID) *podState {
	state, _ := s.pods.LoadOrStore(key, &podState{uid: uid})
	return state.(*podState)
}

// forgetPod drops the state that a name has of another Pod than the one with that UID, which is gone. It
// returns the state, and the drivers of claims that are no longer prepared, or nil where none was.
func (s *states) forgetPod(key types.NamespacedName, except types.UID) (forgotten *podState, asked sets.Set[string]) {
	state, known := s.pods.Load(key)
	if !known || state.(*podState).uid == except {
		return nil, nil
	}
	forgotten = state.(*podState)
	s.pods.Delete(key)
	s.podWrites.End(key)
	if len(forgotten.claims) > 0 {
		return forgotten, s.markUnprepared(forgotten)
	}
	s.forgetWaiting(forgotten.uid)
	return forgotten, nil
}

func (s *states) claimStateOf(uid types.UID) *claimState {
	state, _ := s.claims.LoadOrStore(uid, &claimState{})
	return state.(*claimState)
}

// recordAnswer notes what the API server has answered of a Pod, and returns it without what nothing needs.
func (s *states) recordAnswer(state *podState, pod *corev1.Pod) *corev1.Pod {
	pod.ManagedFields = nil
	state.unseen.Answered(expectations.Version(pod.ResourceVersion))
	s.podWrites.Begin(observe.Key(pod))
	return pod
}

// staleAfterRestore is how long after a restore of etcd a cache may have what was there before: the watch of
// each kind ends by itself, and a reflector waits up to 30 s before it lists anew.
const staleAfterRestore = 2 * expectations.Limit

// recordRestore notes that the API server has gone back to a backup.
func (s *states) recordRestore() { s.restore.Store(time.Now().UnixNano()) }

// isRestored reports whether the API server has gone back to a backup a short time ago, so that no version that is
// known of an object says what there is.
func (s *states) isRestored() bool {
	return time.Since(time.Unix(0, s.restore.Load())) < staleAfterRestore
}

// markPrepared notes that claims are prepared for a Pod, and counts those for which it is
// the first one. A claim that was made anew under its name takes the place of the old one.
func (s *states) markPrepared(state *podState, claims ...*resourcev1.ResourceClaim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, claim := range claims {
		now := preparedClaim{claim.Name, claim.UID}
		if slices.Contains(state.claims, now) {
			continue
		}
		if i := slices.IndexFunc(state.claims, func(known preparedClaim) bool { return known.name == now.name }); i >= 0 {
			s.releaseClaim(state, state.claims[i].uid)
			state.claims = slices.Delete(state.claims, i, i+1)
		}
		state.claims = append(state.claims, now)
		users := s.users[claim.UID]
		users.pods, users.drivers = append(users.pods, state.uid), driverNamesOf(claim)
		s.users[claim.UID] = users
		if len(users.pods) == 1 {
			s.changes.Add(1)
			if !state.standby {
				s.metrics.prepares.Inc()
			}
		}
	}
}

// markUnprepared notes that no claim is prepared any more for a Pod, and counts those for
// which it was the last one. It returns the drivers of these.
func (s *states) markUnprepared(state *podState) (asked sets.Set[string]) {
	s.forgetWaiting(state.uid)
	s.mu.Lock()
	defer s.mu.Unlock()
	asked = sets.New[string]()
	for _, claim := range state.claims {
		asked.Insert(s.releaseClaim(state, claim.uid)...)
	}
	state.claims = nil
	return asked
}

// releaseClaim takes a Pod from the users of a claim. It returns the drivers of the claim if the Pod was the
// last one. The lock is held.
func (s *states) releaseClaim(state *podState, claim types.UID) (asked []string) {
	users := s.users[claim]
	users.pods = slices.DeleteFunc(users.pods, func(user types.UID) bool { return user == state.uid })
	if len(users.pods) > 0 {
		s.users[claim] = users
		return nil
	}
	delete(s.users, claim)
	s.changes.Add(1)
	if !state.standby {
		s.metrics.unprepares.Inc()
	}
	return users.drivers.splitNames()
}

// usersOf are the Pods that a claim is prepared for.
func (s *states) usersOf(claim types.UID) []types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.users[claim].pods)
}

// countPrepared counts the claims that are prepared for a Pod.
func (s *states) countPrepared() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.users)
}
