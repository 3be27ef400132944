package simulator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
)

// limit is a constraint of a claim that leaves a node too few devices for a request.
type limit struct {
	resourcev1.DeviceConstraint

	// most is how many the node has with it.
	most int
}

// limitOf returns the first constraint of the last claim that alone leaves too few devices for its
// last request.
func (s *searcher) limitOf(ctx context.Context, claims []*resourcev1.ResourceClaim, index int) (*limit, error) {
	last := claims[len(claims)-1]
	with := func(constraints ...resourcev1.DeviceConstraint) (int, error) {
		trial := *last
		trial.Spec.Devices.Constraints = constraints
		return s.mostAllocatable(ctx, append(slices.Clone(claims[:len(claims)-1]), &trial), index, s.enough)
	}
	if most, err := with(); most < s.enough || err != nil {
		return nil, err
	}
	for _, constraint := range last.Spec.Devices.Constraints {
		if most, err := with(constraint); most < s.enough || err != nil {
			return &limit{constraint, most}, err
		}
	}
	return nil, nil
}

// describeLimit says what the constraint leaves, and how many of the devices that the request may
// have on all nodes have the attribute at all.
func (l *limit) describeLimit(s *Supply) string {
	name, attribute := "constraint", ""
	values := "the same value"
	switch {
	case l.DistinctAttribute != nil:
		name, attribute, values = "distinctAttribute", string(*l.DistinctAttribute), "different values"
	case l.MatchAttribute != nil:
		name, attribute = "matchAttribute", string(*l.MatchAttribute)
	}
	domain, key, _ := strings.Cut(attribute, "/")
	having := 0
	for _, d := range s.matching {
		if d.hasFact("attributes", domain, key) {
			having++
		}
	}
	text := fmt.Sprintf("%s %s: no node has %s with %s, the most is %d on node %s",
		name, attribute, formatCount(s.wantedCount(), "device"), values, l.most, s.Nearest.Node)
	switch {
	case having == 0:
		return fmt.Sprintf("no %s has attribute %s, which %s of the claim needs", s.describeKind(), attribute, name)
	case having < len(s.matching):
		return text + fmt.Sprintf(", and only %d of %s have the attribute", having, formatPlural(len(s.matching), s.describeKind()))
	case strings.HasPrefix(s.Nearest.By, "the requests before it"):
		return strings.Replace(text, values, values+" as those of the requests before it", 1)
	}
	return text
}
