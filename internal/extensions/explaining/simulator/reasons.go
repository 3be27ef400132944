package simulator

import (
	"context"
	"fmt"
	"strings"
)

// named is how many nodes are named if many have the same reason.
const named = 3

// Reasons says why the Pod fits on no node: the verdict, and then what each node lacks.
func (p *Placement) Reasons(ctx context.Context, s *Scheduler) []string {
	if p.Reason != "" {
		return []string{p.Reason}
	}
	outlook := s.Outlook(ctx, p.Pod)
	return append([]string{outlook.Verdict()}, outlook.Lines()...)
}

// nameNodes names nodes, or the first of many.
func nameNodes(nodes []string) string {
	switch {
	case len(nodes) == 1:
		return "node " + nodes[0]
	case len(nodes) <= named:
		return "nodes " + strings.Join(nodes, ", ")
	}
	return fmt.Sprintf("%d nodes (%s, ...)", len(nodes), strings.Join(nodes[:named], ", "))
}

// WithoutNames replaces the names of claims that are made for the Pod with the names that the Pod
// has for them.
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
