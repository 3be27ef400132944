package drajudge

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// NewNode is a node that does not exist yet, such as an autoscaler can make.
type NewNode struct {
	Node *corev1.Node
	// Slices are those that it will have. It has no other devices.
	Slices []*resourcev1.ResourceSlice
}

// Fits reports whether Pods of an Observer's cluster could run on the node together. It looks at all combinations of devices for
// their claims, whatever these have been allocated. isClear is false if a claim does not exist yet, if the judge does not
// understand a demand of a Pod, or if it gave up.
func (n *NewNode) Fits(ctx context.Context, o *Observer, pods ...*corev1.Pod) (fits, isClear bool) {
	room := measureRoom(map[string]*corev1.Node{n.Node.Name: n.Node}, nil)
	var claims []*resourcev1.ResourceClaim
	for _, pod := range pods {
		if hasOtherDemands(pod) || keepsPodsAway(pod) {
			return false, false
		}
		for _, c := range o.claimsOf(pod) {
			if c.claim == nil {
				return false, false
			}
			claim := c.claim.DeepCopy()
			claim.Status = resourcev1.ResourceClaimStatus{}
			claims = append(claims, claim)
		}
		if !room.suitsPod(n.Node, pod, nil) {
			return false, true
		}
		subtractRequests(room.left[n.Node.Name], pod)
	}
	if len(claims) == 0 {
		return true, true
	}
	world := NewObserver(Options{})
	for id, object := range o.supply.objects {
		if id.kind == "DeviceClass" || id.kind == "DeviceTaintRule" {
			world.supply.replace(id, object)
		}
	}
	world.supply.replace(keyOf(n.Node, "Node"), n.Node)
	for _, slice := range n.Slices {
		world.supply.replace(keyOf(slice, "ResourceSlice"), slice)
	}
	triesLeft := searchLimit
	found, isUnclear := searchDevices(ctx, world, n.Node, claims, &triesLeft)
	return found != nil, found != nil || !isUnclear
}

// IsWaiting reports whether a Pod waits for a node.
func IsWaiting(pod *corev1.Pod) bool { return isWaiting(pod) }

// HasEnded reports whether a Pod no longer needs its claims.
func HasEnded(pod *corev1.Pod) bool { return hasEnded(pod) }
