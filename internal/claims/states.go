package claims

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unique"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
	"github.com/kwok-dra/kwok-dra/internal/controller/expectations"
	"github.com/kwok-dra/kwok-dra/internal/observe"
)

// states is what is remembered of Pods and claims between two reconciliations. All of it can be lost. It prevents
// writes from being repeated before the cache has them, and failures from being retried too early.
type states struct {
	account

	// recorder records what a kubelet measures.
	recorder KubeletRecorder
	// pods maps the keys of Pods to their podState, claims the UIDs of claims to their claimState, and bound the keys of
	// Pods to their boundPod.
	pods, claims, bound sync.Map
	// podAnswers and claimAnswers have what the API server has answered to the last write of a Pod or claim, until the cache
	// has it. Of a claim it is the newest version until then.
	podAnswers   expectations.Unseen[types.NamespacedName, struct{}]
	claimAnswers expectations.Unseen[types.NamespacedName, *resourcev1.ResourceClaim]
	// restoredAt is when etcd was last seen restored, in nanoseconds since 1970, or 0.
	restoredAt atomic.Int64
}

// account says what is prepared, and which Pods wait for that.
type account struct {
	metrics *metrics
	// changes counts the changes of Pods, of claims, and of the account.
	changes atomic.Uint64

	mu sync.Mutex
	// users maps each prepared claim to the Pods it is prepared for, like the kubelet's checkpoint.
	users map[types.UID]claimUsers
	// waiting maps each Pod whose claims are not prepared yet to the reason.
	waiting map[types.UID]waiting
}

// waiting says why the claims of a Pod are not prepared yet.
type waiting struct {
	pod types.NamespacedName
	// reason is preparing if nothing has failed. failure is the last failure, and retry the time of the next try.
	reason, failure string
	retry           time.Time
}

// preparing is the reason of a Pod for which nothing has failed.
const preparing = "preparing"

// claimUsers are the Pods that a claim is prepared for.
type claimUsers struct {
	pods []types.UID
	// drivers are the names of the drivers of the claim's devices, separated by spaces. Most claims have the same, so these
	// are stored once.
	drivers unique.Handle[string]
}

// boundPod says when a Pod was first seen bound. Pods that were bound before the start have none.
type boundPod struct {
	uid types.UID
	at  time.Time
}

// podState belongs to the worker that has the Pod's key.
type podState struct {
	uid    types.UID
	memory plan.PodMemory
	// claims are prepared for the Pod. No two have the same name.
	claims []preparedClaim
	// standby says that another replica prepares the claims, and counts that in its metrics.
	standby  bool
	recorder PodRecorder
	// unprepareEvent is the last event on a failure to unprepare the claims.
	unprepareEvent reportedFailure
	// reportedPending is the reason for which no configuration was active, as the Pod's last event has it.
	reportedPending string
}

// reportedFailure is a failure that an event reports, and the time of the event.
type reportedFailure struct {
	pod     types.UID
	message string
	at      time.Time
}

// isDue reports whether an event on a Pod should report a failure now, and records it if so. What is tried again more often is
// reported again after repeatEventInterval.
func (r *reportedFailure) isDue(pod *corev1.Pod, failure *plan.Failure) bool {
	now := reportedFailure{pod.UID, failure.Error(), time.Now()}
	if r.pod == now.pod && r.message == now.message && now.at.Sub(r.at) < repeatEventInterval {
		return false
	}
	*r = now
	return true
}

// preparedClaim is a claim that is prepared for a Pod.
type preparedClaim struct {
	name string
	uid  types.UID
}

// claimState is locked while the claim is written, so that Pods that share the claim write it once.
type claimState struct {
	sync.Mutex
	memory plan.ClaimMemory
	// bindingEvent is the last event on a Pod that cannot be bound.
	bindingEvent reportedFailure
}

// metrics has the metrics of preparing.
type metrics struct {
	all *prometheus.Registry

	prepares, unprepares prometheus.Counter
	failures             *prometheus.CounterVec
	latency              prometheus.Histogram
	claimWrites          *prometheus.CounterVec
	podWrites            *prometheus.CounterVec
}

func newStates(recorder KubeletRecorder) *states {
	m := &metrics{
		all: prometheus.NewRegistry(),
		prepares: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kwok_dra_claim_prepares_total",
			Help: "ResourceClaims that were prepared. One that Pods share counts once. A restart counts those in use again.",
		}),
		unprepares: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kwok_dra_claim_unprepares_total",
			Help: "ResourceClaims that were unprepared because their last Pod ended.",
		}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kwok_dra_prepare_failures_total",
			Help: "Failed attempts to prepare the claims of a Pod, by reason.",
		}, []string{"reason"}),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "kwok_dra_prepare_duration_seconds",
			Help:    "Time from the event of a Pod's binding to the API server's answer to PodReadyToStartContainers=True.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 18),
		}),
		claimWrites: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kwok_dra_claim_writes_total",
			Help: "Writes of ResourceClaims, by operation (prepare, withdraw, bind) and result (ok or the API server's reason).",
		}, []string{"operation", "result"}),
		podWrites: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kwok_dra_pod_writes_total",
			Help: "Writes of Pods, by operation (waiting, ready, unprepared, health) and result (ok or the API server's reason).",
		}, []string{"operation", "result"}),
	}
	s := &states{recorder: recorder, account: account{metrics: m, users: map[types.UID]claimUsers{}, waiting: map[types.UID]waiting{}}}
	waitingDesc := prometheus.NewDesc("kwok_dra_waiting_pods",
		"Pods on fake nodes whose claims are not prepared yet, by the reason of the last failure, or preparing where nothing has failed.", []string{"reason"}, nil)
	waitingPods := prometheus.CollectorFunc(func(metrics chan<- prometheus.Metric) { // counts at each scrape
		for reason, count := range s.waitingPods() {
			metrics <- prometheus.MustNewConstMetric(waitingDesc, prometheus.GaugeValue, float64(count), reason)
		}
	})
	prepared := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kwok_dra_prepared_claims",
		Help: "ResourceClaims that are prepared for a Pod now.",
	}, func() float64 {
		_, all := s.countInUse()
		return float64(all)
	})
	m.all.MustRegister(m.prepares, m.unprepares, m.failures, m.latency, m.claimWrites, m.podWrites, prepared, waitingPods)
	recorder.CountInUse(s.countInUse)
	return s
}

// recordReady records that a Pod's containers can be started.
func (s *states) recordReady(key types.NamespacedName, uid types.UID) {
	s.forgetWaiting(uid)
	if bound, known := s.bound.Load(key); known && bound.(boundPod).uid == uid {
		s.metrics.latency.Observe(time.Since(bound.(boundPod).at).Seconds())
	}
}

// recordWaiting records that a Pod waits for its claims, and why. Without a failure it keeps what is recorded.
func (s *account) recordWaiting(uid types.UID, why waiting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, known := s.waiting[uid]
	if known && why.reason == preparing {
		return
	}
	if before.failure != why.failure {
		s.changes.Add(1)
	}
	s.waiting[uid] = why
}

// forgetWaiting records that a Pod no longer waits.
func (s *account) forgetWaiting(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting[uid].failure != "" {
		s.changes.Add(1)
	}
	delete(s.waiting, uid)
}

// waitingPods counts the waiting Pods by reason.
func (s *account) waitingPods() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := map[string]int{preparing: 0}
	for _, why := range s.waiting {
		counts[why.reason]++
	}
	return counts
}

// podStateOf returns the state of a Pod. The key must have no state of another Pod.
func (s *states) podStateOf(key types.NamespacedName, uid types.UID) *podState {
	if state, known := s.pods.Load(key); known {
		return state.(*podState)
	}
	state := &podState{uid: uid, recorder: s.recorder.NewPod()}
	s.pods.Store(key, state)
	return state
}

// dueSince is since when the next try to prepare the claims of a Pod is due: since the Pod was bound, if that was seen and no
// try has failed, or else now.
func (s *states) dueSince(key types.NamespacedName, state *podState) time.Time {
	if bound, known := s.bound.Load(key); known && bound.(boundPod).uid == state.uid && state.memory.Last == nil {
		return bound.(boundPod).at
	}
	return time.Now()
}

// forgetPod drops the state of a deleted Pod: the state under a key, unless that has the given UID.
func (s *states) forgetPod(key types.NamespacedName, except types.UID) {
	known, ok := s.pods.Load(key)
	if !ok || known.(*podState).uid == except {
		return
	}
	state := known.(*podState)
	s.pods.Delete(key)
	s.podAnswers.Forget(key)
	wasPrepared := len(state.claims) > 0
	drivers := s.markUnprepared(state)
	if wasPrepared && !state.standby {
		state.recorder.RecordGone(drivers)
	}
}

// claimStateOf returns the state of a claim.
func (s *states) claimStateOf(uid types.UID) *claimState {
	state, _ := s.claims.LoadOrStore(uid, &claimState{})
	return state.(*claimState)
}

// recordPodAnswer records a version of a Pod that the API server has returned to a write or a read, and returns it without
// managed fields. The event of an own write says nothing new, since the next plan is made of the answer.
func (s *states) recordPodAnswer(pod *corev1.Pod, isRead bool) *corev1.Pod {
	pod.ManagedFields = nil
	s.podAnswers.Answered(observe.Key(pod), struct{}{}, pod.ResourceVersion, isRead)
	return pod
}

// staleAfterRestore is how long a cache may be stale after a restore of etcd: the watch of each kind has to end by itself,
// and a reflector waits up to 30 s before it lists again.
const staleAfterRestore = 2 * expectations.Limit

// markPrepared records that claims are prepared for a Pod, and counts the claims of which it is the first user. A claim
// that was deleted and created again replaces the old one of its name.
func (s *account) markPrepared(state *podState, claims ...*resourcev1.ResourceClaim) {
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
		users.pods, users.drivers = append(users.pods, state.uid), unique.Make(strings.Join(sets.List(driversOf(claim)), " "))
		s.users[claim.UID] = users
		if len(users.pods) == 1 {
			s.changes.Add(1)
			if !state.standby {
				s.metrics.prepares.Inc()
			}
		}
	}
}

// markUnprepared records that no claim is prepared for a Pod any more, and counts the claims of which it was the last
// user. It returns the drivers of these.
func (s *account) markUnprepared(state *podState) (drivers sets.Set[string]) {
	s.forgetWaiting(state.uid)
	s.mu.Lock()
	defer s.mu.Unlock()
	drivers = sets.New[string]()
	for _, claim := range state.claims {
		drivers.Insert(s.releaseClaim(state, claim.uid)...)
	}
	state.claims = nil
	return drivers
}

// releaseClaim removes a Pod from the users of a claim. It returns the drivers of the claim if the Pod was the last user.
// The lock must be held.
func (s *account) releaseClaim(state *podState, claim types.UID) (drivers []string) {
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
	return strings.Fields(users.drivers.Value())
}

// usersOf lists the Pods that a claim is prepared for.
func (s *account) usersOf(claim types.UID) []types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.users[claim].pods)
}
