package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// latePods is how many Pods come when the configuration is what it will be.
const latePods = 8

// late are Pods that come after the last change of the configuration: each change has
// all Pods looked at again, also those of which something was missed. Their claims
// are of several nodes, so that the sidecar that acts for the node is not the one that
// prepares them.
func (l *podLoad) late() []operation {
	var all []operation
	for range latePods {
		pod := l.newPod()
		claim := &pod.Spec.ResourceClaims[0]
		claim.ResourceClaimName, claim.ResourceClaimTemplateName = nil, new("fabric")
		all = append(all, operation{
			fmt.Sprintf("create %s late", pod.Name), 4, time.Duration(l.random.Int64N(int64(100 * time.Millisecond))),
			func(ctx context.Context) error { return l.createPod(ctx, pod) },
		})
	}
	return all
}

// TestLate: nothing of the configuration changes after them.
func TestLate(t *testing.T) {
	t.Parallel()
	l := newWorkload(nil, rand.New(rand.NewPCG(1, 0)), 1)
	planned := l.plan()
	last := planned[len(planned)-latePods-1]
	require.Contains(t, last.name, "configure")
	require.Contains(t, planned[len(planned)-1].name, "late")
}
