package checkautoscaler

import (
	"github.com/kwok-dra/kwok-dra/pkg/drajudge"
)

// What is judged. An autoscaler may make more nodes than are needed: that is only counted.
var (
	nodeMade = drajudge.Statement{
		ID: "node-made", Level: drajudge.Must,
		Text:   "At rest, no Pod waits that fits a new node of a group.",
		Source: "KEP-4381, Cluster Autoscaler; Pod condition PodScheduled, reason Unschedulable",
	}
	nodeNeeded = drajudge.Statement{
		ID: "node-needed", Level: drajudge.Must,
		Text:   "A node is made only while Pods wait. For one Pod that fits a group at most one node is made, for two Pods three, for three Pods six: the scheduler may give a Pod the node that was made for another.",
		Source: "KEP-4381, Cluster Autoscaler; Karpenter NodePool, Cluster Autoscaler FAQ, How does scale-up work",
	}
	nodeFits = drajudge.Statement{
		ID: "node-fits", Level: drajudge.Must,
		Text:   "A node is made only if a Pod that waits fits a node of its group: the devices of the group, its labels and its taints.",
		Source: "KEP-4381, Cluster Autoscaler; ResourceClaim spec.devices; ResourceSlice spec.devices",
	}
	nodeRemoved = drajudge.Statement{
		ID: "node-removed", Level: drajudge.Should,
		Text:   "At rest, a group has no more empty nodes than it had before.",
		Source: "Karpenter NodePool spec.disruption.consolidationPolicy; Cluster Autoscaler FAQ, How does scale-down work",
	}
	nodeKept = drajudge.Statement{
		ID: "node-kept", Level: drajudge.Must,
		Text:   "No node goes, and no Pod is evicted, while the Pod uses claims there and must not be disrupted.",
		Source: "KEP-4381; annotations karpenter.sh/do-not-disrupt and cluster-autoscaler.kubernetes.io/safe-to-evict",
	}
)

// Statements are in the order in which documents list them.
func Statements() []drajudge.Statement {
	return []drajudge.Statement{nodeMade, nodeNeeded, nodeFits, nodeRemoved, nodeKept}
}
