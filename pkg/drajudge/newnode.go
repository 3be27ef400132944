package drajudge

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// ClaimsOf returns the claims of a Pod, and whether all of them exist.
func (o *Observer) ClaimsOf(pod *corev1.Pod) (claims []*resourcev1.ResourceClaim, areComplete bool) {
	areComplete = true
	for _, c := range o.claimsOf(pod) {
		if c.claim == nil {
			areComplete = false
			continue
		}
		claims = append(claims, c.claim)
	}
	return claims, areComplete
}

// FitOnNewNode reports whether Pods with these claims could run together on a node that does not exist yet, and has the
// devices of its slices alone. It looks at all combinations of devices, whatever the claims have been allocated. isClear
// is false where the judge does not understand a demand of a Pod, or has given up.
func (o *Observer) FitOnNewNode(ctx context.Context, node *corev1.Node, nodeSlices []*resourcev1.ResourceSlice, pods []*corev1.Pod, claims []*resourcev1.ResourceClaim) (fits, isClear bool) {
	room := measureRoom(map[string]*corev1.Node{node.Name: node}, nil)
	for _, pod := range pods {
		if hasOtherDemands(pod) || keepsPodsAway(pod) {
			return false, false
		}
		if !room.suitsPod(node, pod, nil) {
			return false, true
		}
		subtractRequests(room.left[node.Name], pod)
	}
	if len(claims) == 0 {
		return true, true
	}
	world := NewObserver(Options{})
	for id, object := range o.supply.objects {
		if id.kind == "DeviceClass" || id.kind == "Namespace" || id.kind == "DeviceTaintRule" {
			world.supply.replace(id, object)
		}
	}
	world.supply.replace(keyOf(node, "Node"), node)
	for _, slice := range nodeSlices {
		world.supply.replace(keyOf(slice, "ResourceSlice"), slice)
	}
	unallocated := make([]*resourcev1.ResourceClaim, len(claims))
	for i, claim := range claims {
		unallocated[i] = claim.DeepCopy()
		unallocated[i].Status = resourcev1.ResourceClaimStatus{}
	}
	triesLeft := searchLimit
	found, isUnclear := searchDevices(ctx, world, node, unallocated, &triesLeft)
	return found != nil, found != nil || !isUnclear
}

// IsWaiting reports whether a Pod waits for a node.
func IsWaiting(pod *corev1.Pod) bool { return isWaiting(pod) }

// HasEnded reports whether a Pod no longer needs its claims.
func HasEnded(pod *corev1.Pod) bool { return hasEnded(pod) }

// SlicesOf returns the slices of a node.
func (o *Observer) SlicesOf(node string) []*resourcev1.ResourceSlice {
	var found []*resourcev1.ResourceSlice
	for id := range o.supply.ofNode[node] {
		for _, name := range slices.Sorted(maps.Keys(o.supply.slices[id])) {
			found = append(found, o.supply.slices[id][name])
		}
	}
	return found
}
