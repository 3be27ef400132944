package plan

import (
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
)

// Need is what a plan for a Pod lacks. It has to be read from the API server before the plan is made
// again. Looks at claims and drivers return it as an error.
type Need struct {
	// LiveView asks for a view that rests on the API server, since the caches may lag.
	LiveView bool
	// Claim is the name of a claim of the Pod that a live view lacks.
	Claim string
	// Slices is a driver of which a live view does not know whether it has slices on the node.
	Slices string
}

// Error names what has to be read.
func (n *Need) Error() string {
	return fmt.Sprintf("not read from the API server: %+v", *n)
}

// Live is what was read from the API server in one look at a Pod.
type Live struct {
	// Claims maps the names of claims that were read to the claims, or to nil where there is none.
	Claims map[string]*resourcev1.ResourceClaim
	// HaveSlices says for each driver that was looked up whether it has slices on the node.
	HaveSlices map[string]bool
}

// NewLive returns a Live before anything was read.
func NewLive() *Live {
	return &Live{Claims: map[string]*resourcev1.ResourceClaim{}, HaveSlices: map[string]bool{}}
}
