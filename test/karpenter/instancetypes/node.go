package instancetypes

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/karpenter/kwok/apis/v1alpha1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	requirements "sigs.k8s.io/karpenter/pkg/scheduling"
)

// syntheticNode is what is known of a NodePool's nodes of an instance type before
// there is one. Name and UID are those of no node, so that what is rendered of
// them is like nothing else, but the same wherever it is the same on a node.
func syntheticNode(nodePool *v1.NodePool, it *cloudprovider.InstanceType) *corev1.Node {
	claim := scheduling.NewNodeClaimTemplate(nodePool)
	annotations := maps.Clone(claim.Annotations)
	annotations[v1alpha1.KwokLabelKey] = v1alpha1.KwokLabelValue
	return &corev1.Node{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{
			Name:        nodeName(it),
			UID:         types.UID(it.Name),
			Labels:      commonLabels(claim, it),
			Annotations: annotations,
		},
		Status: corev1.NodeStatus{
			Capacity:    it.Capacity,
			Allocatable: it.Allocatable(),
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

// nodeName makes an instance type's name one that a Node, and so a pool, may have.
func nodeName(it *cloudprovider.InstanceType) string {
	return strings.ReplaceAll(strings.ToLower(it.Name), "_", "-")
}

// commonLabels are those that all nodes of the type have. What differs between them,
// such as the zone where there are several, is not known before a node is there.
func commonLabels(claim *scheduling.NodeClaimTemplate, it *cloudprovider.InstanceType) map[string]string {
	known := requirements.NewRequirements(claim.Requirements.Values()...)
	known.Add(it.Requirements.Values()...)
	known.Add(sharedRequirements(it.Offerings)...)
	all := maps.Clone(claim.Labels)
	for key, requirement := range known {
		if requirement.Operator() == corev1.NodeSelectorOpIn && requirement.Len() == 1 {
			all[key] = requirement.Values()[0]
		}
	}
	delete(all, v1.NodeInitializedLabelKey)
	delete(all, v1.NodeRegisteredLabelKey)
	all[v1alpha1.KwokLabelKey] = v1alpha1.KwokLabelValue
	return all
}

// sharedRequirements are those that all offerings make alike.
func sharedRequirements(offerings cloudprovider.Offerings) []*requirements.Requirement {
	if len(offerings) == 0 {
		return nil
	}
	var shared []*requirements.Requirement
	for key, requirement := range offerings[0].Requirements {
		alike := true
		for _, offering := range offerings[1:] {
			alike = alike && offering.Requirements.Get(key).String() == requirement.String()
		}
		if alike {
			shared = append(shared, requirement)
		}
	}
	return shared
}
