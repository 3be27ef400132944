package simulator

import (
	"context"
	"fmt"
	"strings"
)

// named is how many nodes are named if many have the same reason.
const named = 3

// Reasons say why the Pod fits on no node, each with the nodes that it is true of.
func (p *Placement) Reasons(ctx context.Context, s *Scheduler) []string {
	if p.Reason != "" {
		return []string{p.Reason}
	}
	refusals := s.Explain(ctx, p.Pod)
	if len(refusals) == 0 {
		return []string{"there are no nodes"}
	}
	reasons := make([]string, len(refusals))
	for i := range refusals {
		reasons[i] = refusals[i].Line()
	}
	return reasons
}

func nameNodes(nodes []string) string {
	switch {
	case len(nodes) == 1:
		return "node " + nodes[0]
	case len(nodes) <= named:
		return "nodes " + strings.Join(nodes, ", ")
	}
	return fmt.Sprintf("%d nodes (%s, ...)", len(nodes), strings.Join(nodes[:named], ", "))
}

// WithoutNames puts the names that the Pod has for the claims that are made for
// it in place of the names of these claims.
func (p *Placement) WithoutNames(text string) string {
	var names []string
	for _, claim := range p.Claims {
		if name, made := claim.Annotations[podClaimAnnotation]; made {
			names = append(names, claim.Name, name)
		}
	}
	names = append(names, p.Pod.Name+extendedSuffix, extendedSuffix)
	return strings.NewReplacer(names...).Replace(text)
}
