package simulator

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
)

// Supply is what the nodes on which the Pod may be have for an alternative of a request.
type Supply struct {
	Ask
	Stock
	Losses

	// Error is why the scheduler fails for the request, such as a selector that cannot be
	// evaluated.
	Error string `json:"error,omitempty"`
	// Nearest is the node that lacks the fewest devices, if the request wants a number of them.
	Nearest *Nearest `json:"nearest,omitempty"`
	// Silent is a driver that the selectors name, and that has published nothing.
	Silent string `json:"driverWithoutDevices,omitempty"`

	evidence
}

// Ask is what a request wants.
type Ask struct {
	Claim string `json:"claim"`
	// Request is the name, with that of the alternative if there is one.
	Request string `json:"request"`
	Class   string `json:"class"`
	// Wanted is how many, or "all".
	Wanted string `json:"wanted"`
}

// Stock is how many devices there are for a request.
type Stock struct {
	// OfClass are the devices that the class selects, in complete pools, and Nodes those
	// nodes that reach any of them.
	OfClass int `json:"devicesOfClass"`
	Nodes   int `json:"nodes"`
	// Steps say how many devices each step leaves.
	Steps []Step `json:"steps"`
}

// Losses are why devices of the stock cannot be had.
type Losses struct {
	// Taints are those that keep devices away, and Holders who has the others.
	Taints  []Share `json:"taints,omitempty"`
	Holders []Share `json:"holders,omitempty"`
	// Blocked are what devices lack that no claim has for itself: counters, or capacity. Takers
	// have taken that.
	Blocked []Share `json:"blocked,omitempty"`
	Takers  []Share `json:"takers,omitempty"`
}

// evidence is what the texts about a Supply are made from.
type evidence struct {
	// index is the index of the claim among the pending ones, and request the name of the request
	// without that of the alternative.
	index   int
	request string
	// from are the selectors of the request.
	from []selector
	found
	// tainted, held and dropped are why matching devices are not to be had. A device is counted
	// once, in this order.
	tainted, held int
	dropped       []blocked
	// limit is the constraint that leaves too few on the nearest node, if one does.
	limit *limit
	// elsewhere is why nodes with matching devices do not admit the Pod, if no others have any.
	elsewhere *elsewhere
}

// found are the devices that a request may have if all are free.
type found struct {
	// ofClass are those of the class in complete pools, matching those of them that the selectors of the
	// request leave, and incomplete the matching ones in other pools.
	ofClass, matching, incomplete []device
	// most is the node that reaches the most matching ones.
	most Share
}

// elsewhere are matching devices on nodes that do not admit the Pod.
type elsewhere struct {
	devices  int
	refusals []Refusal
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

// suppliesOf returns the supplies of the requests that nodes refuse, in the order of the requests.
func (s *Scheduler) suppliesOf(ctx context.Context, d *demand, refusals []Refusal) []Supply {
	var fit, unfit []*node
	for _, n := range s.nodes {
		if s.admits(n, d) {
			fit = append(fit, n)
		} else {
			unfit = append(unfit, n)
		}
	}
	all := []Supply{}
	for i, claim := range d.pending {
		for j := range claim.Spec.Devices.Requests {
			request := &claim.Spec.Devices.Requests[j]
			if !slices.ContainsFunc(refusals, func(r Refusal) bool { return r.index == i && r.Request == request.Name }) {
				continue
			}
			for k, alternative := range alternativesOf(request) {
				supply := s.supplyOf(ctx, fit, &alternative)
				supply.index, supply.request = i, request.Name
				supply.keepError(refusals)
				supply.findNearest(refusals, k)
				supply.elsewhere = s.findElsewhere(ctx, d, unfit, &supply, &alternative)
				all = append(all, supply)
			}
		}
	}
	return all
}

// supplyOf counts the devices on nodes that an alternative may have.
func (s *Scheduler) supplyOf(ctx context.Context, nodes []*node, request *alternative) Supply {
	search := searcher{allocator: &s.allocator, request: request}
	seen := map[*resourcev1.Device]bool{}
	for _, n := range nodes {
		reached, _ := n.reachableDevices() // the refusal of the node says what is wrong
		for _, d := range reached {
			if !seen[d.Device] {
				seen[d.Device] = true
				search.left = append(search.left, d)
			}
		}
	}
	search.filterDevices(ctx)
	failure := ""
	if search.failure != nil {
		failure = search.failure.Error()
	}
	dropped := search.dropBlocked()
	count, most := countReaching(nodes, search.matching)
	if len(search.ofClass) > len(search.matching) {
		count, _ = countReaching(nodes, search.ofClass)
	}
	selectors := s.matcher.selectorsOf(request)
	return Supply{
		Ask:   Ask{Request: request.name, Class: request.DeviceClassName, Wanted: request.wantedText()},
		Stock: Stock{OfClass: len(search.ofClass), Nodes: count, Steps: search.steps},
		Losses: Losses{
			Taints: s.published.taintsOn(request, search.tainted), Holders: s.countHolders(search.held),
			Blocked: blockersOf(dropped), Takers: s.countHolders(s.published.devicesDrawingWith(dropped)),
		},
		Error: failure, Silent: s.published.silentDriver(selectors),
		evidence: evidence{
			from: selectors, found: found{search.ofClass, search.matching, s.matcher.keepMatching(ctx, selectors, search.incomplete), most},
			tainted: len(search.tainted), held: len(search.held), dropped: dropped,
		},
	}
}

// findElsewhere finds the devices that an alternative may have on nodes that do not admit the Pod, if its
// supply has none. It returns nil if there are none either.
func (s *Scheduler) findElsewhere(ctx context.Context, d *demand, nodes []*node, supply *Supply, request *alternative) *elsewhere {
	if len(supply.matching)+len(supply.incomplete) > 0 {
		return nil
	}
	selectors, seen, known := s.matcher.selectorsOf(request), map[*resourcev1.Device]bool{}, map[string]int{}
	found := &elsewhere{}
	for _, n := range nodes {
		reached, _ := n.reachableDevices()
		matching := s.matcher.keepMatching(ctx, selectors, reached)
		refusal, refused := d.refuseBeside(n, s.isLive)
		if len(matching) == 0 || !refused {
			continue
		}
		for _, d := range matching {
			seen[d.Device] = true
		}
		found.refusals = appendRefusal(found.refusals, known, refusal, n.object.Name)
	}
	if found.devices = len(seen); found.devices == 0 {
		return nil
	}
	return found
}

// countReaching returns how many nodes reach any of the devices, and which one reaches the most.
func countReaching(nodes []*node, devices []device) (count int, most Share) {
	wanted := map[*resourcev1.Device]bool{}
	for _, d := range devices {
		wanted[d.Device] = true
	}
	for _, n := range nodes {
		reached, _ := n.reachableDevices()
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

// ofDriver matches the part of a selector that chooses a driver.
var ofDriver = regexp.MustCompile(`device\.driver\s*==\s*["']([^"']+)["']`)

// silentDriver returns a driver that selectors name and that has published nothing, or "".
func (p *publications) silentDriver(selectors []selector) string {
	isPublished := map[string]bool{}
	for id := range p.slices {
		isPublished[id.driver] = true
	}
	for _, by := range selectors {
		for _, found := range ofDriver.FindAllStringSubmatch(by.expression, -1) {
			if !isPublished[found[1]] {
				return found[1]
			}
		}
	}
	return ""
}

// taintsOn counts the taints that the request does not tolerate. Taints of DeviceTaintRules, which
// are the last ones of a device, name the rule.
func (p *publications) taintsOn(request *alternative, devices []device) []Share {
	counts := map[string]int{}
	for _, d := range devices {
		byRules := inventory.TaintsBy(p.rules, d.driver, d.pool, d.Name)
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
	return sortShares(counts)
}

// keepError drops the error unless the scheduler fails for the request on some node: it does not
// evaluate the selectors for each device.
func (s *Supply) keepError(refusals []Refusal) {
	for i := range refusals {
		if r := &refusals[i]; r.index == s.index && r.Request == s.request && r.fails {
			s.Error = cmp.Or(s.Error, r.Reason)
			if strings.Contains(r.Reason, invalidPools) && len(s.incomplete) > 0 {
				s.Error = s.incomplete[0].pieces.describe(s.incomplete[0])
			}
			return
		}
	}
	s.Error = ""
}

// invalidPools is the error of the allocator for a pool that it refuses.
const invalidPools = "invalid resource pools were encountered"

// findNearest sets the node that lacks the fewest devices, among those with devices that the
// request could have if all were free.
func (s *Supply) findNearest(refusals []Refusal, alternative int) {
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
