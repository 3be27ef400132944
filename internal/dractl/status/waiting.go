package status

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/dractl/clusterdevices"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/why"
	"github.com/kwok-dra/kwok-dra/internal/extensions/util/natural"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// Waiting is a Pod that waits for devices, or for its claims to be prepared.
type Waiting struct {
	Namespace string    `json:"namespace"`
	Pod       string    `json:"pod"`
	Owner     string    `json:"owner,omitempty"`
	Node      string    `json:"node"`
	State     why.State `json:"state"`
	Reason    string    `json:"reason"`

	answer *why.Answer
}

// listWaiting returns the Pods that wait, and why, by what Pods, claims and events say.
func (w *world) listWaiting(ctx context.Context, f *filter) []Waiting {
	known := why.NewCluster(w.Claims, w.Failures)
	asked := slices.DeleteFunc(slices.Clone(w.Pods), func(pod *corev1.Pod) bool {
		return clusterdevices.HasStarted(pod) || (f.namespace != "" && pod.Namespace != f.namespace) || !f.choosesNode(pod.Spec.NodeName) || !mayWaitFor(pod, known, f)
	})
	all := []Waiting{}
	for _, a := range known.Waiting(ctx, asked) {
		all = append(all, Waiting{a.Namespace, a.Pod, a.Owner, a.Node, a.State, a.Reason, a})
	}
	slices.SortFunc(all, func(a, b Waiting) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), natural.Compare(a.Pod, b.Pod))
	})
	return all
}

// mayWaitFor reports whether a Pod may wait for one of the drivers of the filter. A Pod with a claim without
// devices may wait for any driver.
func mayWaitFor(pod *corev1.Pod, known *why.Cluster, f *filter) bool {
	keys := facts.ClaimKeys(pod)
	for _, key := range keys {
		claim := known.Claims[key]
		if claim == nil || claim.Status.Allocation == nil {
			return true
		}
		if slices.ContainsFunc(claim.Status.Allocation.Devices.Results, func(result resourcev1.DeviceRequestAllocationResult) bool {
			return f.choosesPools(pod.Spec.NodeName, result.Driver)
		}) {
			return true
		}
	}
	return len(keys) < len(pod.Spec.ResourceClaims) // some are not created yet
}

// waitingTable has the Pods that wait, in one row those that are alike.
func (o *Overview) waitingTable() *output.Rows {
	answers := make([]*why.Answer, len(o.Waiting))
	for i := range o.Waiting {
		answers[i] = o.Waiting[i].answer
	}
	table := &output.Rows{
		Title:   "Pods that wait:",
		Columns: []output.Column{{Name: "namespace"}, {Name: "pod"}, {Name: "node", Spare: 1}, {Name: "state"}, {Name: "reason"}},
	}
	for _, group := range why.Groups(answers) {
		table.Add(group.Namespace, group.Title(), group.On(), string(group.State), group.Reason)
	}
	return table
}
