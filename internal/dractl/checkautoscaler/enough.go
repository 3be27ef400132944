package checkautoscaler

import (
	"context"
	"math/bits"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// mostCounted is the number of Pods up to which the judge computes how many nodes are enough.
const mostCounted = 8

// countEnough returns how many new nodes would have been enough for the Pods that have waited since the last rest and got a
// new node. It looks at all ways to put Pods together, so there must not be many.
func (j *judge) countEnough(ctx context.Context) (count int, isKnown bool) {
	isNew := map[string]bool{}
	for _, node := range j.made {
		isNew[node.Name] = true
	}
	var demands []*demand
	for _, d := range j.demands {
		if isNew[d.pod.Spec.NodeName] {
			demands = append(demands, d)
		}
	}
	if len(demands) > mostCounted {
		return 0, false
	}
	// fewest has the number of nodes for each set of Pods, of which each is a bit.
	fewest := make([]int, 1<<len(demands))
	for set := uint(1); set < uint(len(fewest)); set++ {
		fewest[set] = len(demands)
		first := uint(1) << bits.TrailingZeros(set)
		for together := set; together > 0; together = (together - 1) & set {
			if together&first != 0 && fewest[set&^together]+1 < fewest[set] && j.fitTogether(ctx, demands, together) {
				fewest[set] = fewest[set&^together] + 1
			}
		}
	}
	return fewest[len(fewest)-1], true
}

// fitTogether reports whether a new node of some group has room for a set of Pods.
func (j *judge) fitTogether(ctx context.Context, demands []*demand, set uint) bool {
	var pods []*corev1.Pod
	for i, d := range demands {
		if set&(1<<i) != 0 {
			pods = append(pods, d.pod)
		}
	}
	return slices.ContainsFunc(j.groups, func(g *group) bool {
		fits, _ := g.Fits(ctx, j.observer, pods...)
		return fits
	})
}
