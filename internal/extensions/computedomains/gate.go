package computedomains

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
)

// prepareTimeout is how long the plugin tries to prepare a channel before its call fails (ErrorRetryMaxTimeout).
const prepareTimeout = 45 * time.Second

// OnChange calls node when Check may have another answer for the Pods of a node. Call it before Run.
func (c *Controller) OnChange(node func(name string)) { c.onNode = node }

// Check holds a channel back until the daemon on the node is ready. The plugin asks for no more than that, even
// while the ComputeDomain lacks other nodes.
func (c *Controller) Check(node *corev1.Node, claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) error {
	uid := domainOf(claim, result, channelConfig)
	if uid == "" {
		return nil
	}
	failure := func(format string, arguments ...any) *plan.Failure {
		return &plan.Failure{Reason: plan.ReasonDriver, Err: fmt.Errorf(
			"NodePrepareResources failed for ResourceClaim %s: error preparing devices for claim '%s/%s:%s': prepare devices failed: error applying config: %w",
			claim.Name, claim.Namespace, claim.Name, claim.UID, fmt.Errorf(format, arguments...))}
	}
	pending := func(failure *plan.Failure) error { return &plan.Pending{Failure: failure, Timeout: prepareTimeout} }
	if slices.ContainsFunc(c.synced(), func(checker cache.DoneChecker) bool { return !cache.IsDone(checker) }) {
		return pending(failure("the ComputeDomains of the cluster are not known yet"))
	}
	found := c.domainWith(uid)
	if found != nil && found.Namespace != claim.Namespace { // which no time changes
		return failure("error asserting ComputeDomain's namespace: the ResourceClaim's namespace is different than the ComputeDomain's namespace")
	}
	name, err := cliqueName(uid, node)
	switch label := node.Labels[domainLabel]; {
	case found == nil:
		return pending(failure("error asserting ComputeDomain's namespace: ComputeDomain not found: %s", uid))
	case err != nil:
		return failure("error asserting ComputeDomain Ready: %w", err)
	case label != "" && label != uid:
		return pending(failure("error adding Node label for ComputeDomain: label already exists for a different ComputeDomain"))
	case c.isNodeReadyIn(found, node.Name, name):
		return nil
	case c.findsNoPlace(node.Name):
		return pending(failure("error asserting ComputeDomain Ready: current node not ready in ComputeDomain: ComputeDomainClique %s is full: more nodes have the label %s=%s than one NVLink domain has; give each NVLink domain a value of its own",
			name, fabricLabel, node.Labels[fabricLabel]))
	}
	return pending(failure("error asserting ComputeDomain Ready: current node not ready in ComputeDomain"))
}

// isNodeReadyIn reports whether a node is ready in a ComputeDomain, by its clique or by the status.
func (c *Controller) isNodeReadyIn(d *domain, node, cliqueName string) bool {
	for _, clique := range c.cliques.By(byName, cliqueName) {
		if clique.isReady(node) {
			return true
		}
	}
	return d.ready[node]
}
