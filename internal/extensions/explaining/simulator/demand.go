package simulator

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulinghelpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/internal/util/suggest"
)

// demand is what a Pod asks for.
type demand struct {
	pod *corev1.Pod
	// claims are all of the Pod's, pending those that have no devices yet, and
	// places where the others are.
	claims, pending []*resourcev1.ResourceClaim
	places          []place
	affinity        nodeaffinity.RequiredNodeAffinity
	preferred       *nodeaffinity.PreferredSchedulingTerms
	// extended are the resources that pending claims are for.
	extended []corev1.ResourceName
	needs
	// neighbours are nil if the Pods that are there do not matter.
	neighbours *neighbours
	// kind is the same for Pods that fit on the same nodes.
	kind string
}

// needs are what a Pod needs of a node beside devices.
type needs struct {
	requests corev1.ResourceList
	ports    []hostPort
}

// place is where an allocated claim can be used.
type place struct {
	claim string
	nodes *nodeaffinity.NodeSelector
}

// demandOf works out what a Pod asks for. The error says why the Pod fits nowhere.
func (c *catalog) demandOf(pod *corev1.Pod) (*demand, error) {
	d := &demand{pod: pod, affinity: nodeaffinity.GetRequiredNodeAffinity(pod)}
	if len(pod.Spec.SchedulingGates) > 0 {
		return d, fmt.Errorf("spec.schedulingGates: the Pod waits for %q to be removed", pod.Spec.SchedulingGates[0].Name)
	}
	var err error
	if d.claims, err = c.claimsOf(pod); err != nil {
		return d, err
	}
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		if d.preferred, err = nodeaffinity.NewPreferredSchedulingTerms(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution); err != nil {
			return d, fmt.Errorf("spec.affinity.nodeAffinity: %w", err)
		}
	}
	d.needs = needs{podRequests(pod), hostPortsOf(pod)}
	for _, resource := range c.extendedResources(pod) {
		delete(d.requests, resource)
		if pod.Status.ExtendedResourceClaimStatus == nil {
			d.extended = append(d.extended, resource)
		}
	}
	for _, claim := range d.claims {
		if err := c.addToDemand(d, claim); err != nil {
			return d, err
		}
	}
	d.kind, err = d.encodeKind()
	return d, err
}

// addToDemand adds a claim to a demand.
func (c *catalog) addToDemand(d *demand, claim *resourcev1.ResourceClaim) error {
	switch allocation := claim.Status.Allocation; {
	case len(claim.Status.ReservedFor) >= resourcev1.ResourceClaimReservedForMaxSize && !isReservedFor(claim, d.pod):
		return fmt.Errorf("resourceclaim %q is reserved for %d Pods already, the most that are possible", claim.Name, len(claim.Status.ReservedFor))
	case allocation == nil:
		d.pending = append(d.pending, claim)
		return cmp.Or(c.checkAdminAccess(claim), c.checkClasses(claim))
	case allocation.NodeSelector != nil:
		nodes, err := nodeaffinity.NewNodeSelector(allocation.NodeSelector)
		if err != nil {
			return fmt.Errorf("resourceclaim %q: status.allocation.nodeSelector: %w", claim.Name, err)
		}
		d.places = append(d.places, place{claim.Name, nodes})
	}
	return nil
}

// checkAdminAccess returns an error for a request that the API server refuses in the namespace. A claim
// with a UID is there, so it was not refused.
func (c *catalog) checkAdminAccess(claim *resourcev1.ResourceClaim) error {
	permitted, known := c.adminAccess[claim.Namespace]
	if permitted || !known || claim.UID != "" {
		return nil
	}
	for i := range claim.Spec.Devices.Requests {
		if request := &claim.Spec.Devices.Requests[i]; request.Exactly != nil && isTrue(request.Exactly.AdminAccess) {
			return fmt.Errorf("request %s of claim %s wants admin access, which namespace %s does not permit: its label %s is not \"true\"",
				request.Name, cmp.Or(claim.Annotations[podClaimAnnotation], claim.Name), claim.Namespace, resourcev1.DRAAdminNamespaceLabelKey)
		}
	}
	return nil
}

// checkClasses returns an error for a class that does not exist, like the first check of the
// scheduler.
func (c *catalog) checkClasses(claim *resourcev1.ResourceClaim) error {
	for i := range claim.Spec.Devices.Requests {
		for _, exactly := range alternativesOf(&claim.Spec.Devices.Requests[i]) {
			if c.classes[exactly.DeviceClassName] == nil {
				nearest := suggest.Nearest(exactly.DeviceClassName, slices.Sorted(maps.Keys(c.classes)))
				return fmt.Errorf("resourceclaim %q, request %s: %w", claim.Name, exactly.name, &Missing{"deviceclass", exactly.DeviceClassName, nearest})
			}
		}
	}
	return nil
}

// encodeKind returns a text that is equal for Pods that fit on the same nodes.
func (d *demand) encodeKind() (string, error) {
	var specs, places []any
	for _, claim := range d.claims {
		if claim.Status.Allocation == nil {
			specs = append(specs, claim.Spec)
		} else {
			places = append(places, claim.Status.Allocation.NodeSelector)
		}
	}
	spec := &d.pod.Spec
	text, err := json.Marshal([]any{spec.NodeSelector, spec.Affinity, spec.Tolerations, d.extended, specs, places, d.requests, fmt.Sprint(d.ports)})
	if err != nil {
		return "", fmt.Errorf("compare with other Pods: %w", err)
	}
	return string(text), nil
}

// admits reports whether a node can have the Pod now, whatever devices there are.
func (s *Scheduler) admits(n *node, d *demand) bool {
	reason, _ := n.whyOccupied(d, s.isLive)
	return reason == "" && d.fitsOn(n.object)
}

// fitsOn reports whether the Pod could be on a node without other Pods, whatever devices there are.
func (d *demand) fitsOn(node *corev1.Node) bool {
	return d.whyUnfit(node) == "" && !d.hasClaimElsewhere(node) && d.whyUnsupported(node) == ""
}

// whyUnfit says why the node itself keeps the Pod away, or returns "".
func (d *demand) whyUnfit(node *corev1.Node) string {
	if node.Spec.Unschedulable && !d.toleratesNodeTaint(corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}) {
		return "the node is cordoned"
	}
	if untolerated := d.untoleratedTaint(node); untolerated != "" {
		return "the Pod does not tolerate the taint " + untolerated
	}
	if matches, err := d.affinity.Match(node); err != nil {
		return "the Pod's node affinity is invalid: " + err.Error()
	} else if !matches {
		return notSelected
	}
	return ""
}

// untoleratedTaint returns the first taint that keeps the Pod from a node, or "".
func (d *demand) untoleratedTaint(node *corev1.Node) string {
	keepsAway := func(taint *corev1.Taint) bool {
		return taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute
	}
	untolerated, found := schedulinghelpers.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, d.pod.Spec.Tolerations, keepsAway, true)
	if !found {
		return ""
	}
	return untolerated.ToString()
}

// hasClaimElsewhere reports whether a claim of the Pod has devices that the node cannot use.
func (d *demand) hasClaimElsewhere(node *corev1.Node) bool {
	return slices.ContainsFunc(d.places, func(p place) bool { return !p.nodes.Match(node) })
}

// whyUnsupported names an extended resource of the Pod that a device plugin provides on the node,
// or returns "".
func (d *demand) whyUnsupported(node *corev1.Node) string {
	for _, resource := range d.extended {
		if quantity := node.Status.Allocatable[resource]; !quantity.IsZero() {
			return fmt.Sprintf("%s is from a device plugin there, which is not considered", resource)
		}
	}
	return ""
}

func (d *demand) toleratesNodeTaint(taint corev1.Taint) bool {
	return schedulinghelpers.TolerationsTolerateTaint(klog.Background(), d.pod.Spec.Tolerations, &taint, true)
}

// preferenceFor returns a score of a node, which is higher the more the Pod prefers the node.
func (d *demand) preferenceFor(node *corev1.Node) int64 {
	var score int64
	if d.preferred != nil {
		score = d.preferred.Score(node)
	}
	for i := range node.Spec.Taints {
		if node.Spec.Taints[i].Effect == corev1.TaintEffectPreferNoSchedule && !d.toleratesNodeTaint(node.Spec.Taints[i]) {
			score -= unwanted
		}
	}
	return score
}

// unwanted exceeds the weights of all terms that a Pod can prefer.
const unwanted = 1 << 20

// alternative is a request, or one of the alternatives of a request of which the first available
// one is taken.
type alternative struct {
	name string
	resourcev1.ExactDeviceRequest
}

func alternativesOf(request *resourcev1.DeviceRequest) []alternative {
	if request.Exactly != nil {
		return []alternative{{request.Name, *request.Exactly}}
	}
	all := make([]alternative, len(request.FirstAvailable))
	for i := range request.FirstAvailable {
		sub := &request.FirstAvailable[i]
		all[i] = alternative{request.Name + "/" + sub.Name, resourcev1.ExactDeviceRequest{
			DeviceClassName: sub.DeviceClassName, Selectors: sub.Selectors, AllocationMode: sub.AllocationMode,
			Count: sub.Count, Tolerations: sub.Tolerations, Capacity: sub.Capacity, DerivedAttributes: sub.DerivedAttributes,
		}}
	}
	return all
}

// claimsUpTo returns the pending claims with only the first alternatives of each request.
func (d *demand) claimsUpTo(rank, ranks int) []*resourcev1.ResourceClaim {
	if rank >= ranks {
		return d.pending
	}
	cut := make([]*resourcev1.ResourceClaim, len(d.pending))
	for i, claim := range d.pending {
		shallow := *claim
		shallow.Spec.Devices.Requests = slices.Clone(claim.Spec.Devices.Requests)
		for j := range shallow.Spec.Devices.Requests {
			request := &shallow.Spec.Devices.Requests[j]
			request.FirstAvailable = request.FirstAvailable[:min(rank, len(request.FirstAvailable))]
		}
		cut[i] = &shallow
	}
	return cut
}
