package simulator

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/pkg/inventory"
)

// Supply is what there is for an alternative of a request on all nodes on which the Pod
// may be.
type Supply struct {
	Claim string `json:"claim"`
	// Request is the name, with that of the alternative if there is one.
	Request string `json:"request"`
	Class   string `json:"class"`
	// Wanted is how many, or "all".
	Wanted string `json:"wanted"`
	// OfClass are the devices that the class selects, in complete pools, and Nodes those
	// nodes that reach any of them.
	OfClass int `json:"devicesOfClass"`
	Nodes   int `json:"nodes"`
	// Steps say how many devices each step leaves.
	Steps []Step `json:"steps"`
	// Taints are those that keep devices away, and Holders who has the others.
	Taints  []Share `json:"taints,omitempty"`
	Holders []Share `json:"holders,omitempty"`
	// Blocked are what devices lack that no claim has for itself: counters, or capacity. Takers
	// have taken that.
	Blocked []Share `json:"blocked,omitempty"`
	Takers  []Share `json:"takers,omitempty"`
	// Error is why the scheduler fails for the request, such as a selector that cannot be
	// evaluated.
	Error string `json:"error,omitempty"`
	// Nearest is the node that lacks the fewest devices, if the request wants a number of them.
	Nearest *Nearest `json:"nearest,omitempty"`
	// Silent is a driver that the selectors name, and that has published nothing.
	Silent string `json:"driverWithoutDevices,omitempty"`

	index         int
	request       string
	tainted, held int
	from          []selector
	dropped       []blocked
	// matching are the devices of the class that the selectors of the request leave, and most is the
	// node that reaches the most of them. Incomplete are those in pools that are not complete.
	matching, incomplete []device
	most                 Share
	limit                *limit
}

// Share is how many of the devices have something in common.
type Share struct {
	Name    string `json:"name"`
	Devices int    `json:"devices"`
}

// Nearest is a node that lacks devices.
type Nearest struct {
	Node  string `json:"node"`
	Lacks int    `json:"lacks"`
	// By is the step that leaves too few.
	By string `json:"by"`
}

// supplies are of the requests that nodes refuse, in their order.
func (s *Scheduler) supplies(ctx context.Context, d *demand, refusals []Refusal) []Supply {
	var fit []*node
	for _, n := range s.nodes {
		if d.fits(n.object) {
			fit = append(fit, n)
		}
	}
	all := []Supply{}
	for i, claim := range d.pending {
		for j := range claim.Spec.Devices.Requests {
			request := &claim.Spec.Devices.Requests[j]
			refused := func(r Refusal) bool { return r.index == i && r.Request == request.Name }
			if !slices.ContainsFunc(refusals, refused) {
				continue
			}
			for k, alternative := range alternatives(request) {
				supply := s.supply(ctx, fit, &alternative)
				supply.index, supply.request = i, request.Name
				supply.keepError(refusals)
				supply.nearest(refusals, k)
				all = append(all, supply)
			}
		}
	}
	return all
}

// supply counts the devices on nodes that an alternative may have.
func (s *Scheduler) supply(ctx context.Context, nodes []*node, request *alternative) Supply {
	search := searcher{Scheduler: s, request: request}
	seen := map[*resourcev1.Device]bool{}
	for _, n := range nodes {
		reached, _ := n.reachable() // the refusal of the node says what is wrong
		for _, d := range reached {
			if !seen[d.Device] {
				seen[d.Device] = true
				search.left = append(search.left, d)
			}
		}
	}
	search.filter(ctx)
	failure := ""
	if search.failure != nil {
		failure = search.failure.Error()
	}
	dropped := search.dropBlocked()
	count, most := reaching(nodes, search.matching)
	if len(search.ofClass) > len(search.matching) {
		count, _ = reaching(nodes, search.ofClass)
	}
	return Supply{
		Request: request.name, Class: request.DeviceClassName, Wanted: request.wanted(), Steps: search.steps,
		OfClass: len(search.ofClass), Nodes: count, matching: search.matching, most: most,
		incomplete: s.wantedAmong(ctx, request, search.incomplete), Silent: s.silentDriver(request),
		Taints: s.taintsOn(request, search.tainted), Holders: s.holders(search.held),
		Blocked: blockersOf(dropped), Takers: s.takersOf(dropped), Error: failure, dropped: dropped,
		tainted: len(search.tainted), held: len(search.held), from: s.matcher.selectorsOf(request),
	}
}

// reaching is how many nodes reach any of the devices, and which one reaches the most.
func reaching(nodes []*node, devices []device) (count int, most Share) {
	wanted := map[*resourcev1.Device]bool{}
	for _, d := range devices {
		wanted[d.Device] = true
	}
	for _, n := range nodes {
		reached, _ := n.reachable()
		own := 0
		for _, d := range reached {
			if wanted[d.Device] {
				own++
			}
		}
		if own > 0 {
			count++
		}
		if own > most.Devices {
			most = Share{n.object.Name, own}
		}
	}
	return count, most
}

// wantedAmong are the devices that all selectors of a request leave.
func (s *Scheduler) wantedAmong(ctx context.Context, request *alternative, devices []device) []device {
	return slices.DeleteFunc(slices.Clone(devices), func(d device) bool {
		return slices.ContainsFunc(s.matcher.selectorsOf(request), func(by selector) bool {
			matches, _ := s.matcher.matches(ctx, d.driver, d.Device, by)
			return !matches
		})
	})
}

// ofDriver is how a selector chooses a driver.
var ofDriver = regexp.MustCompile(`device\.driver\s*==\s*["']([^"']+)["']`)

// silentDriver is a driver that the selectors of a request name, and that has published nothing.
func (s *Scheduler) silentDriver(request *alternative) string {
	for _, by := range s.matcher.selectorsOf(request) {
		for _, found := range ofDriver.FindAllStringSubmatch(by.expression, -1) {
			if !s.published.has(found[1]) {
				return found[1]
			}
		}
	}
	return ""
}

// taintsOn counts the taints that keep devices away. Those of DeviceTaintRules, which are the
// last ones of a device, name the rule.
func (s *Scheduler) taintsOn(request *alternative, devices []device) []Share {
	counts := map[string]int{}
	for _, d := range devices {
		byRules := inventory.TaintsBy(s.published.rules, d.driver, d.pool, d.Name)
		for i, taint := range d.Taints {
			if request.toleratesTaint(taint) {
				continue
			}
			name := strings.TrimSuffix(taint.Key+"="+taint.Value, "=") + ":" + string(taint.Effect)
			if rule := i - (len(d.Taints) - len(byRules)); rule >= 0 {
				name += " of DeviceTaintRule " + byRules[rule].Rule
			}
			counts[name]++
		}
	}
	return shares(counts)
}

// holders counts the devices of those who have them: Pods, or claims that no Pod uses.
func (c *catalog) holders(devices []device) []Share {
	if len(devices) == 0 {
		return nil
	}
	held := map[[3]string]bool{}
	for _, d := range devices {
		held[[3]string{d.driver, d.pool, d.Name}] = true
	}
	counts := map[string]int{}
	for _, claim := range c.claims {
		if claim.Status.Allocation == nil {
			continue
		}
		for i := range claim.Status.Allocation.Devices.Results {
			result := &claim.Status.Allocation.Devices.Results[i]
			if held[[3]string{result.Driver, result.Pool, result.Device}] && !isTrue(result.AdminAccess) {
				counts[holder(claim)]++
			}
		}
	}
	return shares(counts)
}

// holder names the Pods for which a claim is reserved.
func holder(claim *resourcev1.ResourceClaim) string {
	consumers := claim.Status.ReservedFor
	switch {
	case len(consumers) == 0:
		return "claim " + key(claim.Namespace, claim.Name) + " without a Pod"
	case consumers[0].Resource != "pods":
		return consumers[0].Resource + " " + key(claim.Namespace, consumers[0].Name)
	case len(consumers) > 1:
		return fmt.Sprintf("%s and %d more", key(claim.Namespace, consumers[0].Name), len(consumers)-1)
	}
	return key(claim.Namespace, consumers[0].Name)
}

// shares puts the largest first.
func shares(counts map[string]int) []Share {
	var all []Share
	for name, count := range counts {
		all = append(all, Share{name, count})
	}
	slices.SortFunc(all, func(a, b Share) int { return cmp.Or(cmp.Compare(b.Devices, a.Devices), cmp.Compare(a.Name, b.Name)) })
	return all
}

// keepError keeps the error only if the scheduler fails for the request on any node: it does not
// evaluate selectors for each device.
func (s *Supply) keepError(refusals []Refusal) {
	for i := range refusals {
		if r := &refusals[i]; r.index == s.index && r.Request == s.request && r.fails {
			s.Error = cmp.Or(s.Error, r.Reason)
			return
		}
	}
	s.Error = ""
}

// nearest finds the node that lacks the fewest devices, among those that have any that the request
// could have if all were free.
func (s *Supply) nearest(refusals []Refusal, alternative int) {
	wanted, err := strconv.Atoi(s.Wanted)
	if err != nil {
		return // no number of devices is enough for "all"
	}
	for i := range refusals {
		r := &refusals[i]
		if r.index != s.index || r.Request != s.request || alternative >= len(r.Searches) || r.Searches[alternative].matching == 0 {
			continue
		}
		search := &r.Searches[alternative]
		last := search.Steps[len(search.Steps)-1]
		if lacks := wanted - last.Devices; lacks > 0 && (s.Nearest == nil || lacks < s.Nearest.Lacks) {
			s.Nearest, s.limit = &Nearest{Node: r.Nodes[0], Lacks: lacks, By: last.By}, search.limit
		}
	}
}

// String says it in one line, with the numbers. Cause says what they mean.
func (s *Supply) String() string {
	text := fmt.Sprintf("claim %s, request %s wants %s of class %s: ", s.Claim, s.Request, s.Wanted, s.Class)
	if s.OfClass == 0 {
		return text + s.none()
	}
	text += fmt.Sprintf("%s of the class on %s", counted(s.OfClass, "device"), counted(s.Nodes, "node"))
	for _, by := range s.from {
		if at := slices.IndexFunc(s.Steps, func(step Step) bool { return step.By == by.expression }); at >= 0 && by.from == fromRequest {
			text += fmt.Sprintf(", %d match `%s`", s.Steps[at].Devices, oneLine(by.expression))
		}
	}
	if s.tainted > 0 {
		text += fmt.Sprintf(", %d tainted (%s)", s.tainted, listed(s.Taints))
	}
	if s.held > 0 {
		text += fmt.Sprintf(", %d allocated (%s)", s.held, listed(s.Holders))
	}
	if len(s.Blocked) > 0 {
		text += fmt.Sprintf(", %d blocked (%s)", len(s.dropped), listed(s.Blocked))
	}
	text += fmt.Sprintf(", %d left", s.Steps[len(s.Steps)-1].Devices)
	if s.Nearest == nil {
		return text
	}
	text += fmt.Sprintf("; nearest: node %s lacks %d", s.Nearest.Node, s.Nearest.Lacks)
	if strings.HasSuffix(s.Nearest.By, leave) {
		text += fmt.Sprintf(" (%s too few)", s.Nearest.By)
	}
	return text
}

// none says that no device is of the class.
func (s *Supply) none() string {
	switch all := s.Steps[0].Devices; {
	case all == 0:
		return "no node that the Pod may be on has any device"
	case len(s.Steps) > 1 && s.Steps[1].Devices == 0 && s.Steps[1].By == inCompletePools:
		return fmt.Sprintf("the pools of all %d devices are incomplete", all)
	default:
		return fmt.Sprintf("none of %d devices on the nodes that the Pod may be on is of the class", all)
	}
}

// listed names the largest shares.
func listed(shares []Share) string {
	var parts []string
	for i, share := range shares {
		if i == named {
			parts = append(parts, fmt.Sprintf("and %d more", len(shares)-named))
			break
		}
		parts = append(parts, fmt.Sprintf("%s %d", share.Name, share.Devices))
	}
	return strings.Join(parts, ", ")
}

func counted(count int, noun string) string {
	if count == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", count, noun)
}
