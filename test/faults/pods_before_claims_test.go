package faults

import (
	"context"
	"time"
)

const (
	// latePods is how many Pods come at rest.
	latePods = 8
	// claimLag is how much later than all else sidecars see claims then. A Pod is bound
	// sooner after its claim is allocated.
	claimLag = time.Second
)

// late has Pods come at rest, whose claims the sidecars see later than the Pods: what
// they do not do when they see what was allocated, nothing has them do later. The
// claims are of several nodes, so that the sidecar that acts for the node is not always
// the one that prepares them.
func (r *run) late(ctx context.Context) error {
	if r.load.setup.replicas == 1 {
		return nil
	}
	if err := persist(ctx, r.load.enlarge("fabric").do); err != nil {
		return err
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	schedules := r.schedules(r.load.random)
	for _, s := range schedules {
		s.phases, s.lag.resource, s.lag.length = []phase{{length: stuck}}, "resourceclaims", claimLag
	}
	r.world.disturb(schedules)
	defer r.world.disturb(nil)
	for range latePods {
		pod := r.load.newPod()
		claim := &pod.Spec.ResourceClaims[0]
		claim.ResourceClaimName, claim.ResourceClaimTemplateName = nil, new("fabric")
		if err := persist(ctx, func(ctx context.Context) error { return r.load.createPod(ctx, pod) }); err != nil {
			return err
		}
	}
	return r.settle(ctx)
}
