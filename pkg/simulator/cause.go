package simulator

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Failing is the first request for which the scheduler fails, or nil. That keeps the Pod even
// from nodes that have what it asks for, unless there are so many that the scheduler does not
// look at all.
func (o *Outlook) Failing() *Supply {
	for i := range o.Supplies {
		if o.Supplies[i].Error != "" && (!o.Fits() || o.nodes <= alwaysTried) {
			return &o.Supplies[i]
		}
	}
	return nil
}

// Binding is the request that keeps the Pod from the nodes which come the furthest: the last
// one that any node refuses. A node that refuses an earlier one has less.
func (o *Outlook) Binding() *Supply {
	var last *Supply
	for i := range o.Supplies {
		if s := &o.Supplies[i]; last == nil || s.index != last.index || s.request != last.request {
			last = s
		}
	}
	return last
}

// Cause says in a few words why the request gets no devices, where the numbers alone do not:
// they say themselves what is tainted, allocated, or not of the class.
func (s *Supply) Cause() string {
	left := s.Steps[len(s.Steps)-1].Devices
	wanted, err := strconv.Atoi(s.Wanted)
	if err != nil {
		wanted = 1 // of "all", there is at least one
	}
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
		return fmt.Sprintf("counters and capacity of node %s are enough for %d of %s", s.Nearest.Node, wanted-s.Nearest.Lacks, counted(wanted, "device"))
	case strings.HasSuffix(s.Nearest.By, leave):
		return fmt.Sprintf("on node %s %s %d of %s", s.Nearest.Node, s.Nearest.By, wanted-s.Nearest.Lacks, counted(wanted, "device"))
	}
	return ""
}

// blockedCause names what there is too little of, and who has taken it.
func (s *Supply) blockedCause() string {
	first := s.Blocked[0].Name
	text := fmt.Sprintf("%s has too little left", first)
	var wanted, most *resource.Quantity
	for i := range s.dropped {
		if b := &s.dropped[i]; b.by == first && b.capacity && (most == nil || b.left.Cmp(*most) > 0) {
			wanted, most = &b.wanted, &b.left
		}
	}
	if wanted != nil {
		text += fmt.Sprintf(", %s wanted and at most %s to be had", wanted, most)
	}
	if len(s.Takers) > 0 {
		text += ", taken by " + listed(s.Takers)
	}
	return text
}
