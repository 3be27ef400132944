package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kwok-dra/kwok-dra/internal/dractl/clusterdevices"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

func findGoneNodes(_ context.Context, w *World) []Finding {
	exists := map[string]bool{}
	for _, node := range w.Nodes {
		exists[node.Name] = true
	}
	var findings []Finding
	for _, p := range w.pools {
		of := slices.Concat(p.newest, p.old)
		gone := slices.DeleteFunc(slices.Clone(of), func(slice *resourcev1.ResourceSlice) bool {
			return nodeOf(slice) == "" || exists[nodeOf(slice)]
		})
		if len(gone) == 0 {
			continue
		}
		evidence := fmt.Sprintf("there is no node %s", strings.Join(nodesOf(gone), " and no "))
		var claims []string
		isOfPool := func(result resourcev1.DeviceRequestAllocationResult) bool {
			return result.Driver == p.driver && result.Pool == p.name
		}
		for _, claim := range w.Claims {
			if claim.Status.Allocation != nil && slices.ContainsFunc(claim.Status.Allocation.Devices.Results, isOfPool) {
				claims = append(claims, claim.Namespace+"/"+claim.Name)
			}
		}
		if len(claims) > 0 {
			evidence += "; devices of the pool are allocated to " + firstFew(claims)
		}
		if !slices.ContainsFunc(gone[0].OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.Kind == "Node" }) {
			evidence += "; without an owner reference to the node nobody deletes the slices with it"
		}
		findings = append(findings, Finding{Object: p.String(), Evidence: evidence, Fix: deleteSlices(gone)})
	}
	return findings
}

func findNodesNotReady(_ context.Context, w *World) []Finding {
	used := map[string][]string{}
	for _, claim := range w.Claims {
		if node := w.nodeOfClaim(claim); node != "" && len(claim.Status.ReservedFor) > 0 {
			used[node] = append(used[node], fmt.Sprintf("claim %s/%s for %s", claim.Namespace, claim.Name, strings.Join(clusterdevices.ConsumingPods(claim), ", ")))
		}
	}
	var findings []Finding
	for _, node := range w.Nodes {
		if inventory.IsNodeReady(node) || len(used[node.Name]) == 0 {
			continue
		}
		evidence := describeNotReady(w, node) + "; in use by " + firstFew(used[node.Name])
		findings = append(findings, Finding{
			Object: "node " + node.Name, Evidence: evidence,
			Fix: "kubectl taint nodes " + node.Name + " node.kubernetes.io/out-of-service=nodeshutdown:NoExecute # if it is shut down: its Pods go elsewhere",
		})
	}
	return findings
}

func describeNotReady(w *World, node *corev1.Node) string {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
			text := fmt.Sprintf("Ready is %s since %s", condition.Status, duration.HumanDuration(w.Now.Sub(condition.LastTransitionTime.Time)))
			if condition.Message != "" {
				text += ": " + strings.TrimSuffix(condition.Message, ".")
			}
			return text
		}
	}
	var taints []string
	for _, taint := range node.Spec.Taints {
		taints = append(taints, taint.ToString())
	}
	return "it has the taints " + strings.Join(taints, ", ")
}

// nodeOfClaim is the node on which the devices of a claim are, or where its Pod runs.
func (w *World) nodeOfClaim(claim *resourcev1.ResourceClaim) string {
	if claim.Status.Allocation == nil {
		return ""
	}
	if node := facts.NodeOf(claim); node != "" {
		return node
	}
	for _, name := range clusterdevices.ConsumingPods(claim) {
		if pod := w.cluster.FindPod(claim.Namespace, name); pod != nil && pod.Spec.NodeName != "" {
			return pod.Spec.NodeName
		}
	}
	return ""
}
