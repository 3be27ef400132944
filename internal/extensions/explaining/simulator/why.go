package simulator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// Refusal says why a Pod does not fit on some nodes.
type Refusal struct {
	// Nodes are those that it is true of, in the order of the scheduler's nodes.
	Nodes []string
	// Reason is set if the Pod does not lack devices.
	Reason string
	// Claim is the Pod's own claim that the refusal is about, if there is one.
	Claim string
	// Request is the first of the claim that gets no devices, after those before it.
	Request string
	// Searches have, for each alternative of the request, what was left.
	Searches []Search

	// index is that of the claim: among the pending ones if there is a request, and
	// else among those whose devices are in one place. Pods that ask for the same
	// share refusals, but each has claims of its own.
	index int
	// fits says that it is none: the nodes have what the Pod asks for.
	fits bool
	// fails says that the scheduler fails there, which keeps the Pod from all nodes.
	fails bool
	// shortages are the resources of which the nodes have too little, each with the node that has the most.
	shortages []shortage
}

// Search says how many devices each step left for a request.
type Search struct {
	// Request is the name, with that of the alternative if there is one.
	Request string `json:"request"`
	// Wanted is how many, or "all".
	Wanted string `json:"wanted"`
	Steps  []Step `json:"steps"`

	// matching is how many devices of the class the selectors of the request leave.
	matching int
	// limit is the constraint that leaves too few, if one does.
	limit *limit
}

// Step is how many devices a step leaves.
type Step struct {
	By      string `json:"by"`
	Devices int    `json:"devices"`
}

// explainTimeout bounds a step of an explanation. If it takes longer, there are too many
// combinations to explain.
const explainTimeout = time.Second

var errTooManyCombinations = fmt.Errorf("there are more combinations than can be tried in %s", explainTimeout)

// Explain says why a Pod fits on none of the nodes, by what is free now. Nodes that refuse the
// Pod for the same reason are in one Refusal. If ctx ends meanwhile, what it says is wrong.
func (s *Scheduler) Explain(ctx context.Context, pod *corev1.Pod) []Refusal {
	d, err := s.demandOf(pod)
	if err != nil {
		return nil
	}
	k := s.kindOf(ctx, d)
	if k.refusals == nil {
		known := map[string]int{}
		for _, n := range s.nodes {
			refusal := s.refuseOnNode(ctx, n, d)
			refusal.nameClaim(d)
			k.refusals = appendRefusal(k.refusals, known, refusal, n.object.Name)
		}
	}
	own := slices.Clone(k.refusals)
	for i := range own {
		own[i].nameClaim(d)
	}
	return own
}

// appendRefusal adds the refusal of a node to those of others, by what they say.
func appendRefusal(all []Refusal, known map[string]int, refusal Refusal, node string) []Refusal {
	alike := refusal.Reason
	if refusal.shortages == nil {
		alike = refusal.String()
	}
	at, found := known[alike]
	if !found {
		at = len(all)
		known[alike] = at
		all = append(all, refusal)
	}
	all[at].Nodes = append(all[at].Nodes, node)
	if refusal.shortages != nil {
		keepLargest(all[at].shortages, refusal.shortages)
	}
	return all
}

// nameClaim sets the name of the claim, which is different for each Pod that asks.
func (r *Refusal) nameClaim(d *demand) {
	switch {
	case r.Request != "":
		r.Claim = d.pending[r.index].Name
	case r.Claim != "":
		r.Claim = d.places[r.index].claim
	}
}

// refuseOnNode says why a Pod does not fit on a node. The Refusal fits if it does.
func (s *Scheduler) refuseOnNode(ctx context.Context, n *node, d *demand) Refusal {
	if refusal, refused := d.refuseBeside(n, s.isLive); refused {
		return refusal
	}
	for i, p := range d.places {
		if !p.nodes.Match(n.object) {
			return Refusal{Claim: p.claim, Reason: "its devices are elsewhere", index: i}
		}
	}
	if reason := d.whyUnsupported(n.object); reason != "" {
		return Refusal{Reason: reason}
	}
	for i, claim := range d.pending {
		for j := range claim.Spec.Devices.Requests {
			if refusal, refused := s.refuseRequest(ctx, n, d, i, j); refused {
				return refusal
			}
		}
	}
	return Refusal{Reason: "the Pod would fit now", fits: true}
}

// refuseBeside says what else than devices keeps a Pod from a node.
func (d *demand) refuseBeside(n *node, isLive bool) (refusal Refusal, refused bool) {
	if reason := d.whyUnfit(n.object); reason != "" {
		return Refusal{Reason: reason}, true
	}
	reason, shortages := n.whyOccupied(d, isLive)
	return Refusal{Reason: reason, shortages: shortages}, reason != ""
}

// refuseRequest returns a Refusal if the node lacks what is asked for up to a request of a pending
// claim.
func (s *Scheduler) refuseRequest(ctx context.Context, n *node, d *demand, claim, request int) (Refusal, bool) {
	pending := d.pending[claim]
	found, err := s.hasDevices(ctx, n, append(slices.Clone(d.pending[:claim]), cutAfterRequest(pending, request)))
	if found {
		return Refusal{}, false
	}
	refusal := Refusal{Request: pending.Spec.Devices.Requests[request].Name, index: claim}
	refusal.fails = err != nil && !errors.Is(err, errTooManyCombinations)
	if err == nil {
		refusal.Searches, err = s.searchAlternatives(ctx, n, d.pending[:claim], pending, request)
	}
	if err != nil {
		refusal.Reason = err.Error()
	}
	return refusal, true
}

// cutAfterRequest copies a claim with its requests up to one.
func cutAfterRequest(claim *resourcev1.ResourceClaim, last int) *resourcev1.ResourceClaim {
	shallow := *claim
	shallow.Spec.Devices.Requests = slices.Clone(claim.Spec.Devices.Requests[:last+1])
	return &shallow
}

// hasDevices reports whether the node has what is asked for. It does not ask the allocator if too
// few devices are left.
func (a *allocator) hasDevices(ctx context.Context, n *node, claims []*resourcev1.ResourceClaim) (bool, error) {
	if a.lacksDevices(ctx, n, claims) {
		return false, nil
	}
	return a.canAllocate(ctx, n, claims)
}

// canAllocate reports whether the allocator finds devices for all that is asked for. The error is that of ctx if the caller
// has given up: then nothing is known.
func (a *allocator) canAllocate(ctx context.Context, n *node, claims []*resourcev1.ResourceClaim) (bool, error) {
	limited, cancel := context.WithTimeout(ctx, explainTimeout)
	defer cancel()
	results, err := a.allocateOn(limited, n, claims)
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case limited.Err() != nil:
		return false, errTooManyCombinations
	}
	return results != nil, err
}

// Fails reports whether the scheduler fails on the nodes, which keeps the Pod from all.
func (r *Refusal) Fails() bool { return r.fails }

// Line describes the refusal with its nodes, of which some are named.
func (r *Refusal) Line() string { return nameNodes(r.Nodes) + ": " + r.String() }

// String describes the refusal without its nodes.
func (r *Refusal) String() string {
	var text strings.Builder
	if r.Claim != "" {
		text.WriteString("claim " + r.Claim)
	}
	if r.Request != "" {
		text.WriteString(", request " + r.Request)
	}
	if r.Reason != "" && r.Claim != "" {
		text.WriteString(": ")
	}
	text.WriteString(r.Reason)
	if len(r.shortages) > 0 {
		text.WriteString(" (" + describeShortages(r.shortages) + ")")
	}
	for i := range r.Searches {
		search := &r.Searches[i]
		if search.Request != r.Request {
			text.WriteString(", " + search.Request[len(r.Request)+1:])
		}
		text.WriteString(" wants " + search.Wanted + ": ")
		for j, step := range search.Steps {
			if j > 0 {
				text.WriteString(", ")
			}
			text.WriteString(oneLine(step.By) + " " + strconv.Itoa(step.Devices))
		}
	}
	return text.String()
}
