package simulator

import (
	"fmt"
	"slices"
	"strings"
)

// String describes the supply in one line of numbers. Cause says what they mean.
func (s *Supply) String() string {
	text := fmt.Sprintf("claim %s, request %s wants %s of class %s: ", s.Claim, s.Request, s.Wanted, s.Class)
	switch all := s.Steps[0].Devices; {
	case s.OfClass > 0:
	case all == 0:
		return text + "no node that the Pod may be on has any device"
	case len(s.Steps) > 1 && s.Steps[1].Devices == 0 && s.Steps[1].By == inCompletePools:
		return text + fmt.Sprintf("the pools of all %d devices are incomplete or invalid", all)
	default:
		return text + fmt.Sprintf("none of %d devices on the nodes that the Pod may be on is of the class", all)
	}
	text += fmt.Sprintf("%s of the class on %s", formatCount(s.OfClass, "device"), formatCount(s.Nodes, "node"))
	for _, by := range s.from {
		if at := slices.IndexFunc(s.Steps, func(step Step) bool { return step.By == by.expression }); at >= 0 && by.from == fromRequest {
			text += fmt.Sprintf(", %d match `%s`", s.Steps[at].Devices, oneLine(by.expression))
		}
	}
	if s.tainted > 0 {
		text += fmt.Sprintf(", %d tainted (%s)", s.tainted, listShares(s.Taints))
	}
	if s.held > 0 {
		text += fmt.Sprintf(", %d allocated (%s)", s.held, listShares(s.Holders))
	}
	if len(s.Blocked) > 0 {
		text += fmt.Sprintf(", %d blocked (%s)", len(s.dropped), listShares(s.Blocked))
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

// listShares names the largest shares.
func listShares(shares []Share) string {
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

func formatCount(count int, noun string) string {
	if count == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", count, noun)
}
