package simulator

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Verdict says in one line what keeps the Pod from all nodes: first the cause, then the numbers,
// and the nearest node that has such devices.
func (o *Outlook) Verdict() string {
	missing, isMissing := errors.AsType[*Missing](o.Err)
	switch failing := o.Failing(); {
	case isMissing && missing.Kind == "deviceclass":
		nearest := ""
		if missing.Nearest != "" {
			nearest = fmt.Sprintf(" (there is %q)", missing.Nearest)
		}
		return fmt.Sprintf("there is no DeviceClass %q%s: create it, or correct %s", missing.Name, nearest, strings.TrimSuffix(o.Err.Error(), ": "+missing.Error()))
	case o.Err != nil:
		return o.Err.Error()
	case failing != nil:
		return failing.Error
	case o.Fits():
		fit := o.Refusals[slices.IndexFunc(o.Refusals, func(r Refusal) bool { return r.fits })]
		return nameNodes(fit.Nodes) + hasOrHave(fit.Nodes) + "what it asks for now"
	case len(o.Supplies) > 0:
		return o.describeLack()
	case len(o.Refusals) > 0:
		return o.withoutNodes()
	}
	return "there are no nodes"
}

// Lines are what the Verdict leaves out: what each request lacks if several do, and each node.
func (o *Outlook) Lines() []string {
	verdict, isFailing := o.Verdict(), o.Failing() != nil
	var lines []string
	if len(o.Supplies) > 1 && !isFailing {
		for i := range o.Supplies {
			lines = append(lines, o.Supplies[i].String())
		}
	}
	for i := range o.Refusals {
		refusal := &o.Refusals[i]
		if line := refusal.Line(); len(o.Refusals) > 1 && !refusal.fails && !strings.Contains(verdict, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// hasOrHave is the verb for nodes.
func hasOrHave(nodes []string) string {
	if len(nodes) > 1 {
		return " have "
	}
	return " has "
}

// describeLack is the verdict if nodes lack devices. It joins alternatives and requests with the
// same cause.
func (o *Outlook) describeLack() string {
	binding := o.Binding()
	var causes []string
	requests := map[string][]string{} // by their cause
	isAlternative := false
	for i := range o.Supplies {
		s := &o.Supplies[i]
		ofBinding := s.index == binding.index && s.request == binding.request
		cause := s.describeSupply()
		if !ofBinding && cause != binding.describeSupply() {
			continue
		}
		isAlternative = isAlternative || ofBinding && s != binding
		if requests[cause] == nil {
			causes = append(causes, cause)
		}
		request := "request " + s.Request
		if len(o.Claims) > 1 {
			request += " of claim " + s.Claim
		}
		request += " wants " + s.Wanted
		if s.wantedCount() > 1 {
			request += " on one node"
		}
		requests[cause] = append(requests[cause], request)
	}
	for i, cause := range causes {
		causes[i] = cause + "; " + strings.Join(requests[cause], ", and ")
	}
	text := ""
	if isAlternative {
		text = "no alternative is to be had: "
	}
	return o.addNodes(text + strings.Join(causes, "; "))
}

// addNodes adds to a text about the lack what may help: the nodes that have the devices and do not admit
// the Pod, or the nearest node.
func (o *Outlook) addNodes(text string) string {
	binding := o.Binding()
	if o.priority > 0 && len(binding.Holders) > 0 {
		text += "; kube-scheduler preempts no Pod for devices, whatever the priority"
	}
	switch {
	case o.excluded != nil && binding.elsewhere != nil:
		return text + "; " + nameNodes(o.excluded.Nodes) + hasOrHave(o.excluded.Nodes) + "them free"
	case o.excluded != nil:
		return text + fmt.Sprintf("; %s%sit all, but %s", nameNodes(o.excluded.Nodes), hasOrHave(o.excluded.Nodes), o.excluded)
	case binding.Nearest != nil && !slices.Contains(strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" ,;:()", r) }), binding.Nearest.Node):
		return text + fmt.Sprintf("; nearest: node %s lacks %d", binding.Nearest.Node, binding.Nearest.Lacks)
	}
	return text
}

// withoutNodes is the verdict if no node admits the Pod, whatever its devices.
func (o *Outlook) withoutNodes() string {
	var lines []string
	elsewhere := ""
	for i := range o.Refusals {
		if r := &o.Refusals[i]; r.Claim != "" {
			elsewhere = r.Claim
		} else {
			lines = append(lines, r.Line())
		}
	}
	reasons := strings.Join(lines, "; ")
	for _, claim := range o.Claims {
		if claim.Name != elsewhere {
			continue
		}
		text := "claim " + claim.Name + " has its devices already"
		if results := claim.Status.Allocation.Devices.Results; len(results) > 0 {
			text = fmt.Sprintf("claim %s has device %s/%s/%s already", claim.Name, results[0].Driver, results[0].Pool, results[0].Device)
		}
		return fmt.Sprintf("%s, by %s, and the Pod cannot go there: %s", text, holderOf(claim), cmp.Or(reasons, "no node reaches it, so delete the claim"))
	}
	if o.unselected != "" {
		reasons = o.unselected + ", which the Pod's nodeSelector or node affinity asks for; " + reasons
	}
	if len(o.Refusals) == 1 && len(o.Refusals[0].shortages) == 1 && o.Refusals[0].shortages[0].isUnprovided() {
		return describeShortages(o.Refusals[0].shortages)
	}
	if len(o.Claims) == 0 {
		return "no node admits the Pod: " + reasons
	}
	return "no node may have the Pod, whatever its devices: " + reasons
}

// describeKind says what kind of device the request may have.
func (s *Supply) describeKind() string {
	if by := s.narrowestSelector(); by.from == fromRequest {
		return fmt.Sprintf("device of class %s that matches `%s`", s.Class, oneLine(by.expression))
	}
	return "device of class " + s.Class
}

// narrowestSelector returns the first selector that leaves no more devices than all selectors do:
// one of the class if those leave none.
func (s *Supply) narrowestSelector() selector {
	for _, by := range s.from {
		at := slices.IndexFunc(s.Steps, func(step Step) bool { return step.By == by.expression || by.from != fromRequest && step.By == by.from })
		if at > 0 && s.Steps[at].Devices < s.Steps[at-1].Devices && s.Steps[at].Devices == len(s.matching) {
			return by
		}
	}
	return selector{}
}

// describeSupply says the cause, with the numbers.
func (s *Supply) describeSupply() string {
	all, most, wanted := len(s.matching), s.most.Devices, s.wantedCount()
	kind, cause := s.describeKind(), s.Cause()
	switch {
	case len(s.incomplete) > 0 && all < wanted && (all == 0 || all+len(s.incomplete) >= wanted):
		return s.incomplete[0].pieces.describe(s.incomplete[0])
	case all == 0 && s.Silent != "":
		return fmt.Sprintf("driver %s has published no devices: start its plugin", s.Silent)
	case s.elsewhere != nil:
		return s.elsewhere.describe(kind)
	case s.Steps[0].Devices == 0:
		return fmt.Sprintf("no node that the Pod may be on has any device, of class %s or another", s.Class)
	case s.OfClass == 0:
		return fmt.Sprintf("no device is of class %s: its selector `%s` matches none of %d on the nodes that the Pod may be on", s.Class, oneLine(s.narrowestSelector().expression), s.Steps[0].Devices)
	case all == 0:
		return fmt.Sprintf("there is no %s, among %d of the class on %s%s", kind, s.OfClass, formatCount(s.Nodes, "node"), s.describeUnknownAttribute())
	case s.Wanted == allDevices && s.Error == "" && s.devicesLeft() < all && s.devicesLeft() > 0:
		return fmt.Sprintf("the request wants all devices of a node, and no node has all of them free: %s", s.takenCause())
	case s.dropped == nil && most < wanted && !slices.ContainsFunc(s.matching, device.isShareable):
		return fmt.Sprintf("no node has as many devices: node %s has the most, %d, of %s on %s", s.most.Name, most, formatPlural(all, kind), formatCount(s.Nodes, "node"))
	case s.Error == "" && cause == "" || s.tainted == all || s.held == all:
		return s.takenCause()
	}
	return cause + fmt.Sprintf("; %s on %s, %d left", formatPlural(all, kind), formatCount(s.Nodes, "node"), s.devicesLeft())
}

// describe says which nodes have the devices, and why they do not admit the Pod.
func (e *elsewhere) describe(kind string) string {
	lines := make([]string, len(e.refusals))
	for i := range e.refusals {
		lines[i] = e.refusals[i].Line()
	}
	if e.devices == 1 {
		return fmt.Sprintf("the only %s is on a node that does not admit the Pod: %s", kind, strings.Join(lines, "; "))
	}
	return fmt.Sprintf("all %s are on nodes that do not admit the Pod: %s", formatPlural(e.devices, kind), strings.Join(lines, "; "))
}

// takenCause says why devices cannot be had: claims, taints, or what is shared.
func (s *Supply) takenCause() string {
	var parts []string
	all := len(s.matching)
	of := fmt.Sprintf("%s on %s", formatPlural(all, s.describeKind()), formatCount(s.Nodes, "node"))
	for _, part := range []struct {
		devices int
		what    string
	}{
		{s.held, "allocated (" + listShares(s.Holders) + ")"},
		{s.tainted, "tainted (" + listShares(s.Taints) + "), which the request does not tolerate"},
		{len(s.dropped), "blocked (" + listShares(s.Blocked) + ")"},
	} {
		switch {
		case part.devices == all && all == 1:
			return "the only " + s.describeKind() + " is " + part.what
		case part.devices == all:
			return fmt.Sprintf("all %s are %s", of, part.what)
		case part.devices > 0:
			parts = append(parts, fmt.Sprintf("%d %s", part.devices, part.what))
		}
	}
	if len(parts) == 0 {
		return fmt.Sprintf("no node has enough of the %d left of %s", s.devicesLeft(), of)
	}
	return fmt.Sprintf("only %d of %s can be had: %s", s.devicesLeft(), of, strings.Join(parts, ", "))
}

// formatPlural formats a number of devices of a kind.
func formatPlural(count int, kind string) string {
	if count == 1 {
		return "1 " + kind
	}
	kind = strings.Replace(kind, "device", "devices", 1)
	return fmt.Sprintf("%d %s", count, strings.Replace(kind, "that matches", "that match", 1))
}
