package page

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/extensions/util/natural"
)

const (
	// waitingCacheTime is how long the list of waiting Pods is reused.
	waitingCacheTime = 2 * time.Second
	// maxNamedPods bounds the Pods of a group that are named.
	maxNamedPods = 10
	// maxExplainedGroups bounds the groups that are explained, those with most Pods first.
	maxExplainedGroups = 10
	// explainedCacheTime is how long an explanation is reused, and explainThrift how many times
	// as long as it took the next one waits: at most a twentieth of a core goes into them.
	explainedCacheTime = 15 * time.Second
	explainIdleFactor  = 20
)

// WaitingPod is a Pod with claims that waits.
type WaitingPod struct {
	Namespace, Name string
	// Owner is the controller of the Pod, as Job/training, or empty.
	Owner string
	// Asks are the ResourceClaimTemplates and claims of the Pod's spec. Pods without an owner
	// are alike if they ask for the same.
	Asks string
	// Node is empty for a Pod that is not scheduled.
	Node string
	// Reason is what the scheduler says, or why the claims are not prepared.
	Reason string
	Since  time.Time
	// Retry is when preparing is tried again, or zero.
	Retry time.Time
}

// WaitingGroup are Pods of one owner, or without one and with the same claims in their spec,
// that wait for the same.
type WaitingGroup struct {
	Namespace string `json:"namespace"`
	Owner     string `json:"owner,omitempty"`
	// State is unscheduled or preparing.
	State string `json:"state"`
	// Reason is what the scheduler says, or why the claims are not prepared.
	Reason string `json:"reason"`
	// Why is what kwok-dractl why says of the first Pod.
	Why   *Verdict `json:"why,omitempty"`
	Count int      `json:"count"`
	// Pods are the names of the first ones.
	Pods []string `json:"pods"`
	// Node is that of all of them, if there is one.
	Node string `json:"node,omitempty"`
	// Since is when the first one began to wait, and Retry the next try of any.
	Since time.Time  `json:"since"`
	Retry *time.Time `json:"retry,omitempty"`

	alike alike
}

// alike is the key of a group. For Pods without a node it leaves out the scheduler's reason, whose
// words change with every node that comes. For Pods with a node, the reason is without the names of
// claims that were created for one Pod.
type alike struct{ namespace, owner, asks, state, reason string }

// Verdict is why a Pod waits.
type Verdict struct {
	Pod     string   `json:"pod"`
	Reason  string   `json:"reason"`
	Details []string `json:"details,omitempty"`
}

// waitingAnswer is the answer of /api/waiting.
type waitingAnswer struct {
	Groups      []WaitingGroup `json:"groups"`
	Unexplained string         `json:"unexplained,omitempty"`
}

// The states of Pods that wait.
const (
	unscheduled = "unscheduled"
	preparing   = "preparing"
)

// waiting answers which Pods wait, and why. Its answers are reused for a while, however many
// viewers there are.
type waiting struct {
	ask func(ctx context.Context) ([]WaitingPod, error)
	why *explaining

	mu     sync.Mutex
	at     time.Time
	groups []WaitingGroup
	// verdicts are of the groups that were explained last, and unexplained says why there are none.
	verdicts    map[alike]*Verdict
	unexplained string

	// explainMu is held while groups are explained, and protects when that was and how long it took.
	explainMu sync.Mutex
	explained time.Time
	took      time.Duration
}

// serveWaiting serves GET /api/waiting: the Pods with claims that wait for a node, or on a fake node
// for their claims to be prepared. Those that are alike are one group:
//
//	{
//	  "groups": [{                       // those with most Pods first
//	    "namespace": "research", "owner": "Job/training",  // the owner is absent for Pods without one
//	    "state": "unscheduled",          // or "preparing"
//	    "reason": "0/10 nodes are available: 10 cannot allocate all claims.",  // of the scheduler, or why preparing fails
//	    "why": {"pod": "training-0", "reason": "no node has ...", "details": [...]},  // see below
//	    "count": 12, "pods": ["training-0", ...],          // at most 10 names
//	    "node": "h100-0",                // absent where they are not all on one
//	    "since": "2026-01-01T00:00:00Z", // of the Pod that has waited longest
//	    "retry": "2026-01-01T00:01:30Z"  // the next try to prepare, absent where none has failed
//	  }],
//	  "unexplained": "there are 10000 nodes, ..."  // why no group has "why", absent where some have
//	}
//
// "why" is what kwok-dractl why says of the first Pod of each of the first 10 groups. It is
// absent while nobody has asked for GET /api/waiting?why, which waits for these answers where
// a group has none or they are 15 seconds old. The cluster is read once for all of them, and
// for the next ones not before 20 times as long has passed as these took.
//
// At most 500 Pods without a node are looked at, and of those without claims in their spec,
// which have extended resources, none. A replica tells of preparing where it acts.
func (w *waiting) serveWaiting(writer http.ResponseWriter, r *http.Request) {
	groups, err := w.currentGroups(r.Context())
	if err != nil {
		http.Error(writer, err.Error(), http.StatusBadGateway)
		return
	}
	if r.URL.Query().Has("why") {
		w.explainGroups(r.Context(), groups)
	}
	w.mu.Lock()
	answer := &waitingAnswer{Groups: slices.Clone(groups), Unexplained: w.unexplained}
	for i := range answer.Groups {
		answer.Groups[i].Why = w.verdicts[answer.Groups[i].alike]
	}
	w.mu.Unlock()
	writeJSON(writer, r, answer)
}

// explainGroups explains why the first groups wait, if that is due.
func (w *waiting) explainGroups(ctx context.Context, groups []WaitingGroup) {
	w.explainMu.Lock()
	defer w.explainMu.Unlock()
	groups = groups[:min(len(groups), maxExplainedGroups)]
	if !w.isDue(groups) {
		return
	}
	var names []types.NamespacedName
	for i := range groups {
		names = append(names, types.NamespacedName{Namespace: groups[i].Namespace, Name: groups[i].Pods[0]})
	}
	began := time.Now()
	answers, err := w.why.answerInTurn(ctx, names)
	if ctx.Err() != nil {
		return // the client has gone, so the error says nothing
	}
	w.explained = time.Now()
	w.took = w.explained.Sub(began)
	verdicts, unexplained := map[alike]*Verdict{}, ""
	if err != nil {
		unexplained = err.Error()
	}
	for _, answer := range answers {
		i := slices.Index(names, types.NamespacedName{Namespace: answer.Namespace, Name: answer.Pod})
		verdicts[groups[i].alike] = &Verdict{answer.Pod, answer.Reason, answer.Details}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.verdicts, w.unexplained = verdicts, unexplained
}

// isDue reports whether groups have to be explained now.
func (w *waiting) isDue(groups []WaitingGroup) bool {
	if len(groups) == 0 {
		return false
	}
	passed := time.Since(w.explained)
	if passed < max(waitingCacheTime, explainIdleFactor*w.took) {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	isNew := func(group WaitingGroup) bool { return w.verdicts[group.alike] == nil && w.unexplained == "" }
	return passed >= explainedCacheTime || slices.ContainsFunc(groups, isNew)
}

func (w *waiting) currentGroups(ctx context.Context) ([]WaitingGroup, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.groups != nil && time.Since(w.at) < waitingCacheTime {
		return w.groups, nil
	}
	pods, err := w.ask(ctx)
	if err != nil {
		return nil, err
	}
	w.groups, w.at = groupsOf(pods), time.Now()
	return w.groups, nil
}

// groupsOf puts Pods that are alike into one group.
func groupsOf(pods []WaitingPod) []WaitingGroup {
	slices.SortFunc(pods, func(a, b WaitingPod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), natural.Compare(a.Name, b.Name))
	})
	groups, index := []WaitingGroup{}, map[alike]int{}
	for i := range pods {
		pod := &pods[i]
		key := pod.groupKey()
		at, known := index[key]
		if !known {
			at = len(groups)
			index[key] = at
			groups = append(groups, WaitingGroup{
				Namespace: pod.Namespace, Owner: pod.Owner, State: pod.stateName(), Reason: pod.Reason, Node: pod.Node, Since: pod.Since, alike: key,
			})
		}
		groups[at].addPod(pod)
	}
	slices.SortStableFunc(groups, func(a, b WaitingGroup) int { return cmp.Compare(b.Count, a.Count) })
	return groups
}

func (p *WaitingPod) stateName() string {
	if p.Node == "" {
		return unscheduled
	}
	return preparing
}

func (p *WaitingPod) groupKey() alike {
	key := alike{namespace: p.Namespace, owner: p.Owner, asks: p.Asks, state: p.stateName()}
	if key.owner == "" && key.asks == "" {
		key.owner = p.Name
	}
	if key.owner != "" {
		key.asks = ""
	}
	if key.state == preparing {
		isOwn := func(word string) bool { return strings.Contains(word, p.Name+"-") }
		key.reason = strings.Join(slices.DeleteFunc(strings.Fields(p.Reason), isOwn), " ")
	}
	return key
}

func (g *WaitingGroup) addPod(pod *WaitingPod) {
	g.Count++
	if len(g.Pods) < maxNamedPods {
		g.Pods = append(g.Pods, pod.Name)
	}
	if g.Node != pod.Node {
		g.Node = ""
	}
	if pod.Since.Before(g.Since) {
		g.Since = pod.Since
	}
	if retry := pod.Retry; !retry.IsZero() && (g.Retry == nil || retry.Before(*g.Retry)) {
		g.Retry = &retry
	}
}
