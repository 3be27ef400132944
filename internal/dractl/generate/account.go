package generate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kwok-dra/kwok-dra/internal/config"
)

// leftOut is something of the input that is not in the copy. Everything that is read
// is either copied or left out with a reason.
type leftOut struct {
	kind, name, reason string
}

// newLeftOutPool gives the first reason of a template that is refused.
func newLeftOutPool(p *pool, reason error) leftOut {
	text := reason.Error()
	if refusals, _ := config.Refusals(reason); len(refusals) > 0 && len(refusals[0].Problems) > 0 {
		text = "no template can have it: " + refusals[0].Problems[0].String()
	}
	text, _, _ = strings.Cut(text, "\n")
	return leftOut{kind: "pool", name: p.driver + "/" + p.name, reason: text}
}

// account says what became of the input.
type account struct {
	left []leftOut
	// nodes, slices and copiedSlices count what was read and what is copied.
	nodes, copiedNodes, slices, copiedSlices int
}

// newAccount counts what was read, and what was left out while reading.
func newAccount(read *source) *account {
	a := &account{left: slices.Clone(read.left), nodes: len(read.nodes), slices: len(read.slices)}
	for _, one := range read.left {
		switch one.kind {
		case "Node":
			a.nodes++
		case "ResourceSlice":
			a.slices++
		}
	}
	return a
}

// maxNamed limits how many reasons are told, and how many names for each. The comment at the head of the copy
// has all of them.
const maxNamed = 10

// describeLeftOut says what is left out: for each kind and reason how many, and the names.
// Most limits both reasons and names, unless it is 0. The last line has the totals. There
// are no lines for a copy of everything.
func (a *account) describeLeftOut(most int) []string {
	type group struct{ kind, reason string }
	names := map[group][]string{}
	var order []group
	for _, one := range a.left {
		g := group{one.kind, one.reason}
		if names[g] == nil {
			order = append(order, g)
		}
		names[g] = append(names[g], one.name)
	}
	if len(order) == 0 {
		return nil
	}
	var lines []string
	for i, g := range order {
		if most > 0 && i == most && len(order) > most+1 {
			lines = append(lines, fmt.Sprintf("left out: more for %d other reasons, which the comment at the head of the copy has", len(order)-most))
			break
		}
		shown, more := names[g], ""
		if most > 0 && len(shown) > most {
			shown, more = shown[:most], fmt.Sprintf(" and %d more", len(shown)-most)
		}
		kind := g.kind
		if len(names[g]) > 1 && kind == strings.ToLower(kind) {
			kind += "s"
		}
		lines = append(lines, fmt.Sprintf("left out: %d %s: %s: %s%s", len(names[g]), kind, g.reason, strings.Join(shown, ", "), more))
	}
	return append(lines, fmt.Sprintf("copied %d of %d nodes and %d of %d ResourceSlices", a.copiedNodes, a.nodes, a.copiedSlices, a.slices))
}
