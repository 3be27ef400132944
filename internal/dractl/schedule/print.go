package schedule

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/simulator"
)

// printPlacements prints where the Pods go, and why others do not fit.
func (c *command) printPlacements(ctx context.Context, scheduler *simulator.Scheduler, placements []*simulator.Placement) error {
	reasons := map[*simulator.Placement][]string{}
	progress := c.streams.Progress("finding out why Pods do not fit", 0)
	for _, p := range placements {
		if p.Node == "" {
			reasons[p] = p.Reasons(ctx, scheduler)
		}
	}
	progress.Done()
	if ctx.Err() != nil { // reasons of a search that was interrupted are wrong
		return ctx.Err()
	}
	if c.output.Format.IsValue() {
		return output.Objects(c.streams.Out, c.output.Format, scheduledObjects(placements, reasons))
	}
	table := output.Rows{Columns: []output.Column{{Name: "namespace"}, {Name: "pod"}, {Name: "node"}, {Name: "claim", Wide: true}, {Name: "devices"}}}
	for _, p := range placements {
		var claims, devices []string
		for _, claim := range p.Claims {
			claims = append(claims, claim.Name)
			if claim.Status.Allocation == nil {
				continue
			}
			for i := range claim.Status.Allocation.Devices.Results {
				result := &claim.Status.Allocation.Devices.Results[i]
				devices = append(devices, result.Request+"="+result.Driver+"/"+result.Pool+"/"+result.Device)
			}
		}
		table.Add(p.Pod.Namespace, p.Pod.Name, output.OrNone(p.Node), output.OrNone(claims...), output.OrNone(devices...))
	}
	if err := table.Print(c.streams.Out, c.output.Format); err != nil {
		return err
	}
	return printBlocks(c.streams.Out, "\nPod %s fits on no node%s:\n  %s\n", groupBlocks(placements, reasons))
}

// scheduledObjects are the Pods and their claims as the scheduler would leave them.
func scheduledObjects(placements []*simulator.Placement, reasons map[*simulator.Placement][]string) []output.Object {
	var all []output.Object
	seen := map[string]bool{}
	for _, p := range placements {
		pod := p.Pod.DeepCopy()
		pod.Spec.NodeName = p.Node
		condition := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}
		if p.Node == "" {
			condition.Status, condition.Reason, condition.Message = corev1.ConditionFalse, corev1.PodReasonUnschedulable, strings.Join(reasons[p], "\n")
		}
		pod.Status.Conditions = append([]corev1.PodCondition{condition},
			slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })...)
		hasNames := len(p.Pod.Status.ResourceClaimStatuses) > 0 || len(p.Claims) < len(pod.Spec.ResourceClaims)
		for i, claim := range pod.Spec.ResourceClaims {
			if !hasNames && claim.ResourceClaimTemplateName != nil {
				status := corev1.PodResourceClaimStatus{Name: claim.Name, ResourceClaimName: &p.Claims[i].Name}
				pod.Status.ResourceClaimStatuses = append(pod.Status.ResourceClaimStatuses, status)
			}
		}
		all = append(all, pod)
		for _, claim := range p.Claims {
			if name := namespacedName(claim.Namespace, claim.Name); !seen[name] {
				seen[name] = true
				all = append(all, claim)
			}
		}
	}
	return all
}

// namespacedName names an object of a namespace.
func namespacedName(namespace, name string) string { return namespace + "/" + name }
