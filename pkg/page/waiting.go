package page

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	// waitingFor is how long an answer about Pods that wait is given again.
	waitingFor = 2 * time.Second
	// namedPods is how many Pods of a group are named.
	namedPods = 10
)

// WaitingPod is a Pod with claims that waits.
type WaitingPod struct {
	Namespace, Name string
	// Owner is the controller of the Pod, as Job/training, or empty.
	Owner string
	// Node is empty for a Pod that is not scheduled.
	Node string
	// Reason is what the scheduler says, or why the claims are not prepared.
	Reason string
	Since  time.Time
	// Retry is when preparing is tried again, or zero.
	Retry time.Time
}

// WaitingGroup are Pods of one owner that wait for the same reason.
type WaitingGroup struct {
	Namespace string `json:"namespace"`
	Owner     string `json:"owner,omitempty"`
	// State is unscheduled or preparing.
	State  string `json:"state"`
	Reason string `json:"reason"`
	Count  int    `json:"count"`
	// Pods are the names of the first ones.
	Pods []string `json:"pods"`
	// Node is that of all of them, if there is one.
	Node string `json:"node,omitempty"`
	// Since is when the first one began to wait, and Retry the next try of any.
	Since time.Time  `json:"since"`
	Retry *time.Time `json:"retry,omitempty"`
}

// The states of Pods that wait.
const (
	unscheduled = "unscheduled"
	preparing   = "preparing"
)

// waiting answers who waits. The last answer is given again for a while, however many look.
type waiting struct {
	ask func(ctx context.Context) ([]WaitingPod, error)

	mu     sync.Mutex
	at     time.Time
	groups []WaitingGroup
}

// serve serves GET /api/waiting: the Pods with claims that wait for a node, or on a fake node
// for their claims to be prepared. Those that are alike are one group:
//
//	{
//	  "groups": [{                       // those with most Pods first
//	    "namespace": "research", "owner": "Job/training",  // the owner is absent for a Pod without one
//	    "state": "unscheduled",          // or "preparing"
//	    "reason": "0/10 nodes are available: 10 cannot allocate all claims.",
//	    "count": 12, "pods": ["training-0", ...],          // at most 10 names
//	    "node": "h100-0",                // absent where they are not all on one
//	    "since": "2026-01-01T00:00:00Z", // of the Pod that has waited longest
//	    "retry": "2026-01-01T00:01:30Z"  // the next try to prepare, absent where none has failed
//	  }]
//	}
//
// At most 500 Pods without a node are looked at, and of those without claims in their spec,
// which have extended resources, none. A replica tells of preparing where it acts.
func (w *waiting) serve(writer http.ResponseWriter, r *http.Request) {
	groups, err := w.current(r.Context())
	if err != nil {
		http.Error(writer, err.Error(), http.StatusBadGateway)
		return
	}
	write(writer, r, map[string][]WaitingGroup{"groups": groups})
}

func (w *waiting) current(ctx context.Context) ([]WaitingGroup, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.groups != nil && time.Since(w.at) < waitingFor {
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
	type alike struct{ namespace, owner, state, reason string }
	slices.SortFunc(pods, func(a, b WaitingPod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	groups, index := []WaitingGroup{}, map[alike]int{}
	for i := range pods {
		pod := &pods[i]
		key := alike{pod.Namespace, cmp.Or(pod.Owner, pod.Name), pod.state(), pod.Reason}
		at, known := index[key]
		if !known {
			at = len(groups)
			index[key] = at
			groups = append(groups, WaitingGroup{
				Namespace: pod.Namespace, Owner: pod.Owner, State: pod.state(), Reason: pod.Reason, Node: pod.Node, Since: pod.Since,
			})
		}
		groups[at].add(pod)
	}
	slices.SortStableFunc(groups, func(a, b WaitingGroup) int { return cmp.Compare(b.Count, a.Count) })
	return groups
}

func (p *WaitingPod) state() string {
	if p.Node == "" {
		return unscheduled
	}
	return preparing
}

func (g *WaitingGroup) add(pod *WaitingPod) {
	g.Count++
	if len(g.Pods) < namedPods {
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
