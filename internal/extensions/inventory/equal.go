package inventory

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Equal reports whether two devices that are gone say the same.
func (d GoneDevice) Equal(other GoneDevice) bool {
	return d.Node == other.Node && d.Driver == other.Driver && d.Pool == other.Pool && d.isEqualTo(other.Device)
}

// Equal reports whether two items say the same.
func (i *Item) Equal(other *Item) bool {
	return i.ID == other.ID && i.Node == other.Node && i.NotReady == other.NotReady && slices.EqualFunc(i.Pools, other.Pools, Pool.isEqualTo)
}

func (p Pool) isEqualTo(other Pool) bool {
	return p.Driver == other.Driver && p.Kind == other.Kind && p.Name == other.Name && p.Generation == other.Generation &&
		p.Slices == other.Slices && p.SliceCount == other.SliceCount && p.Usage == other.Usage && slices.EqualFunc(p.Devices, other.Devices, Device.isEqualTo)
}

func (d Device) isEqualTo(other Device) bool {
	return d.Name == other.Name && d.State == other.State && d.Shared == other.Shared && d.Used == other.Used && d.BlockedBy == other.BlockedBy &&
		slices.EqualFunc(d.Claims, other.Claims, Claim.isEqualTo) && slices.EqualFunc(d.Taints, other.Taints, Taint.isEqualTo)
}

func (c Claim) isEqualTo(other Claim) bool {
	return c.Namespace == other.Namespace && c.Name == other.Name && c.Prepared == other.Prepared &&
		c.ShareID == other.ShareID && c.AdminAccess == other.AdminAccess && c.Failure == other.Failure &&
		slices.Equal(c.Pods, other.Pods) && maps.EqualFunc(c.Consumed, other.Consumed, resource.Quantity.Equal)
}

func (t Taint) isEqualTo(other Taint) bool {
	return t.Key == other.Key && t.Value == other.Value && t.Effect == other.Effect && t.TimeAdded.Equal(other.TimeAdded) && t.Rule == other.Rule
}
