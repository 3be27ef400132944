package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// firstRing is what "make test" runs: the unit tests, and one pass over real
// clusters that publishes, prepares, plays Stages, reads each carrier of
// configuration and follows the README. Names are of parts, tests as for
// go test -run; without them the whole part runs.
var firstRing = []struct{ part, tests string }{
	{part: "unit tests"},
	{part: "unit tests of test/cluster"},
	{part: "unit tests of test"},
	{part: "unit tests of test/karpenter"},
	{part: "unit tests of test/others"},
	{part: "test/e2e/docs", tests: `^TestPages$/^README\.md$`},
	{part: "test/e2e/publish", tests: "^TestPublish$"}, // reads a ConfigMap
	{part: "test/e2e/prepare", tests: "^TestPrepare$"},
	{part: "test/e2e/stages", tests: "^TestStages$"},
	{part: "test/e2e/configuration", tests: "^TestCustomResources$"}, // reads a file too
	{part: "test/e2e/adapters"},                                      // reads DRAConfigs, NodeOverlays, dra-kwok's ConfigMap
}

// waiting are directories of tests that wait for clocks more than they compute,
// those that take longest first.
var waiting = []string{
	"test/faults", "test/e2e/drivers", "test/e2e/docs", "test/karpenter/e2e", "test/e2e/install", "test/e2e/publish", "test/e2e/checkdriver",
}

// A ring chooses of all parts.
type ring string

const (
	first ring = "first"
	// rest is all that is not in the first ring.
	rest ring = "rest"
	all  ring = "all"
)

// partsOf returns the parts of the ring, of which some run only some of their tests.
func (r ring) partsOf(parts []part) ([]part, error) {
	switch r {
	case first, rest:
	case all:
		return parts, nil
	default:
		return nil, fmt.Errorf("read -ring %q: must be %s, %s or %s", r, first, rest, all)
	}
	var chosen []part
	for _, p := range parts {
		entry := slices.IndexFunc(firstRing, func(f struct{ part, tests string }) bool { return f.part == p.name })
		switch {
		case entry < 0:
			if r == first && p.name != programsPart {
				continue
			}
		case firstRing[entry].tests != "":
			p.limit = []string{map[ring]string{first: "-run", rest: "-skip"}[r], firstRing[entry].tests}
		case r == rest:
			continue
		}
		chosen = append(chosen, p)
	}
	return chosen, nil
}

// matchingParts returns the parts whose names match, and what makes the programs that
// these need.
func matchingParts(parts []part, wanted *regexp.Regexp) []part {
	var chosen []part
	needsCluster := false
	for _, p := range slices.Backward(parts) {
		if wanted.MatchString(p.name) || p.name == programsPart && needsCluster {
			chosen = append(chosen, p)
			needsCluster = needsCluster || p.needsCluster
		}
	}
	slices.Reverse(chosen)
	return chosen
}

// waitingFirst marks the parts that wait, and puts them before the others.
func waitingFirst(parts []part) []part {
	rank := func(p part) int {
		i := slices.IndexFunc(waiting, func(dir string) bool { return p.name == dir || strings.HasPrefix(p.name, dir+"/") })
		if i < 0 {
			return len(waiting)
		}
		return i
	}
	for i := range parts {
		parts[i].waits = rank(parts[i]) < len(waiting)
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(rank(a), rank(b)) })
	return parts
}
