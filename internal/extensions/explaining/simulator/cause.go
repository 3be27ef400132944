package simulator

import (
	"fmt"
	"strconv"
	"strings"
)

// Failing returns the first request for which the scheduler fails, or nil. A failure keeps the Pod
// even from nodes that have what it asks for, unless there are so many nodes that the scheduler
// does not look at all of them.
func (o *Outlook) Failing() *Supply {
	for i := range o.Supplies {
		if o.Supplies[i].Error != "" && (!o.Fits() || o.nodes <= alwaysTried) {
			return &o.Supplies[i]
		}
	}
	return nil
}

// Binding returns the request that keeps the Pod from the nodes that come closest: the last one
// that any node refuses. A node that refuses an earlier request has less.
func (o *Outlook) Binding() *Supply {
	var last *Supply
	for i := range o.Supplies {
		if s := &o.Supplies[i]; last == nil || s.index != last.index || s.request != last.request {
			last = s
		}
	}
	return last
}

// Cause says in a few words why the request gets no devices, if the numbers alone do not say it:
// they show what is tainted, allocated, or not of the class.
func (s *Supply) Cause() string {
	left, wanted := s.devicesLeft(), s.wantedCount()
	switch {
	case s.Error != "":
		return s.Error
	case len(s.dropped) > 0 && left < wanted && left+len(s.dropped) >= wanted:
		return s.blockedCause()
	case s.OfClass == 0 || left < wanted:
		return ""
	case s.Nearest == nil:
		return "the nodes with devices for it have none for the requests before it, or not all that it wants"
	case s.Nearest.By == countersAndCapacity:
		return fmt.Sprintf("counters and capacity of node %s are enough for %d of %s", s.Nearest.Node, wanted-s.Nearest.Lacks, formatCount(wanted, "device"))
	case s.limit != nil:
		return s.limit.describeLimit(s)
	case strings.HasSuffix(s.Nearest.By, leave):
		return fmt.Sprintf("on node %s %s %d of %s", s.Nearest.Node, s.Nearest.By, wanted-s.Nearest.Lacks, formatCount(wanted, "device"))
	}
	return ""
}

// devicesLeft returns how many devices are left on all nodes.
func (s *Supply) devicesLeft() int { return s.Steps[len(s.Steps)-1].Devices }

// wantedCount returns how many devices are wanted: at least one for "all".
func (s *Supply) wantedCount() int {
	if wanted, err := strconv.Atoi(s.Wanted); err == nil {
		return wanted
	}
	return 1
}

// blockedCause names what devices have too little of, and who has it.
func (s *Supply) blockedCause() string {
	first := s.Blocked[0].Name
	var best *blocked // the device that comes the closest
	for i := range s.dropped {
		b := &s.dropped[i]
		if b.by != first || !b.capacity {
			continue
		}
		if best == nil || best.exceeded && !b.exceeded || best.exceeded == b.exceeded && b.left.Cmp(best.left) > 0 {
			best = b
		}
	}
	text := first + " has too little left"
	switch {
	case best == nil:
	case best.exceeded && best.left.IsZero():
		return fmt.Sprintf("no free device has %s, %s wanted", first, &best.wanted)
	case best.exceeded:
		return fmt.Sprintf("%s of the free devices is too small, %s wanted and at most %s to be had", first, &best.wanted, &best.left)
	default:
		text += fmt.Sprintf(", %s wanted and at most %s to be had", &best.wanted, &best.left)
	}
	if len(s.Takers) > 0 {
		text += ", taken by " + listShares(s.Takers)
	}
	return text
}
