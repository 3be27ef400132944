package plan

import resourcev1 "k8s.io/api/resource/v1"

// Need is what has to be read from the API server before a plan can be made. A look at a claim or
// a driver ends with it as an error.
type Need struct {
	// Claim is the name of a claim of the Pod.
	Claim string
	// Slices is a driver of which it is to be known whether it has slices on the node.
	Slices string
}

// Error names what is to be read.
func (n *Need) Error() string {
	if n.Claim != "" {
		return "ResourceClaim " + n.Claim + " has not been read"
	}
	return "the slices of driver " + n.Slices + " have not been read"
}

// Live is what the API server has said in one look at a Pod, as far as it was asked.
type Live struct {
	// Claims are by name. One that does not exist is nil.
	Claims map[string]*resourcev1.ResourceClaim
	// HaveSlices has for each driver whether it has slices on the node.
	HaveSlices map[string]bool
}

// NewLive is what is known before anything was asked.
func NewLive() *Live {
	return &Live{Claims: map[string]*resourcev1.ResourceClaim{}, HaveSlices: map[string]bool{}}
}
