package faults

import (
	"context"
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/test/internal/fleet"
)

// allocateOfInstallation has a Pod on the first node of an installation use a claim.
func (s *site) allocateOfInstallation(ctx context.Context, installation int) error {
	node := selectedBy(installation) + "-node-0"
	return s.allocateOn(ctx, fleet.SelectNode(node), boundPod("user-of-"+selectedBy(installation), node), device{gpuDriver, node, "gpu-0"})
}

// wrongClaims are those that are not prepared. What one installation has prepared must stay when the other one comes.
func (f *installations) wrongClaims(s *site, there found) []string {
	if !f.haveClaims {
		return nil
	}
	var wrong []string
	for installation := range s.running() {
		name := "user-of-" + selectedBy(installation)
		isPrepared := func(claim resourcev1.ResourceClaim) bool { return claim.Name == name && len(claim.Status.Devices) > 0 }
		if !slices.ContainsFunc(there.claims, isPrepared) {
			wrong = append(wrong, fmt.Sprintf("claim %s has no entries", name))
		}
	}
	return wrong
}
