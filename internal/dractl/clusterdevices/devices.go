package clusterdevices

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/extensions/util/natural"
)

// Device is a device with what a person asks first.
type Device struct {
	// Node is left out for a device that nodes share.
	Node   string          `json:"-"`
	Driver string          `json:"driver"`
	Pool   string          `json:"pool"`
	Name   string          `json:"device"`
	State  inventory.State `json:"state"`
	// Whole is the device that this one is a part of.
	Whole string `json:"whole,omitempty"`
	// Shared, Used and BlockedBy are those of the inventory.
	Shared    bool    `json:"shared,omitempty"`
	Used      float32 `json:"used,omitempty"`
	BlockedBy string  `json:"blockedBy,omitempty"`
	// Blockers are the devices that have taken what a blocked device needs.
	Blockers []Blocker `json:"blockers,omitempty"`

	UUID    string            `json:"uuid,omitempty"`
	Product string            `json:"product,omitempty"`
	Memory  string            `json:"memory,omitempty"`
	Claims  []inventory.Claim `json:"claims,omitempty"`
	Taints  []inventory.Taint `json:"taints,omitempty"`

	Attributes map[string]string `json:"attributes,omitempty"`
	Capacity   map[string]string `json:"capacity,omitempty"`

	// notReadyNode is the node of the device if that is not ready.
	notReadyNode string
	// incomplete says which slices of the pool are missing, if that blocks the device.
	incomplete string
}

// Blocker is a device that keeps another one from claims, with the claims that have it.
type Blocker struct {
	Device string            `json:"device"`
	Claims []inventory.Claim `json:"claims"`
}

// deviceKey names a published device.
type deviceKey struct {
	driver, pool string
	generation   int64
	name         string
}

// ListDevices returns the devices of the pools that a function chooses by their node, which is empty for pools
// that nodes share, and those that are gone, by node, driver, pool and name.
func (o *Objects) ListDevices(chooses func(node string) bool) []Device {
	devices := []Device{}
	found, identities := map[deviceKey]*resourcev1.Device{}, inventory.Identities{}
	for _, slice := range o.Slices {
		identities.Add(slice.Spec.Driver, slice.Spec.Pool.Name, slice.Spec.Devices)
		for i := range slice.Spec.Devices {
			device := &slice.Spec.Devices[i]
			found[deviceKey{slice.Spec.Driver, slice.Spec.Pool.Name, slice.Spec.Pool.Generation, device.Name}] = device
		}
	}
	taken := o.TakeInventory()
	for _, item := range taken.Items {
		if !chooses(item.Node) {
			continue
		}
		for i := range item.Pools {
			pool := &item.Pools[i]
			devices = append(devices, describePool(item, pool, taken.Kinds[pool.Kind], identities, func(name string) *resourcev1.Device {
				return found[deviceKey{pool.Driver, pool.Name, pool.Generation, name}]
			})...)
		}
	}
	for i := range taken.Gone {
		if gone := &taken.Gone[i]; chooses(gone.Node) {
			devices = append(devices, newDevice(gone.Node, gone.Driver, gone.Pool, &gone.Device))
		}
	}
	slices.SortStableFunc(devices, func(a, b Device) int {
		return cmp.Or(natural.Compare(a.Node, b.Node), cmp.Compare(a.Driver, b.Driver), natural.Compare(a.Pool, b.Pool),
			natural.Compare(cmp.Or(a.Whole, a.Name), cmp.Or(b.Whole, b.Name)), cmp.Compare(a.Whole, b.Whole), natural.Compare(a.Name, b.Name))
	})
	return devices
}

// describePool describes the devices of a pool.
func describePool(item *inventory.Item, pool *inventory.Pool, kind *inventory.Kind, identities inventory.Identities, find func(name string) *resourcev1.Device) []Device {
	var devices []Device
	for i := range pool.Devices {
		shown := newDevice(item.Node, pool.Driver, pool.Name, &pool.Devices[i])
		shown.Whole = kind.Whole(i)
		published := find(shown.Name)
		if published.NodeName != nil {
			shown.Node = *published.NodeName
		}
		known := identities.Describe(shown.Driver, published)
		shown.UUID, shown.Product, shown.Memory = known.UUID, known.Product, known.Memory
		shown.Attributes, shown.Capacity = known.Attributes, known.Capacity
		switch {
		case item.NotReady:
			shown.notReadyNode = item.Node
		case shown.State == inventory.Blocked && shown.BlockedBy == "":
			shown.incomplete = fmt.Sprintf("its pool has %d of %d slices", pool.Slices, pool.SliceCount)
		case shown.State == inventory.Blocked:
			shown.Blockers = findBlockers(shown.Name, pool, find)
		}
		devices = append(devices, shown)
	}
	return devices
}

func newDevice(node, driver, pool string, known *inventory.Device) Device {
	return Device{
		Node: node, Driver: driver, Pool: pool, Name: known.Name, State: known.State,
		Shared: known.Shared, Used: known.Used, BlockedBy: known.BlockedBy, Claims: known.Claims, Taints: known.Taints,
	}
}

// findBlockers returns the devices of a pool that claims have and that draw on a counter set on which the
// blocked device draws too.
func findBlockers(blocked string, pool *inventory.Pool, find func(name string) *resourcev1.Device) []Blocker {
	var blockers []Blocker
	needs := find(blocked).ConsumesCounters
	for i := range pool.Devices {
		device := &pool.Devices[i]
		draws := slices.ContainsFunc(find(device.Name).ConsumesCounters, func(c resourcev1.DeviceCounterConsumption) bool {
			return slices.ContainsFunc(needs, func(own resourcev1.DeviceCounterConsumption) bool { return own.CounterSet == c.CounterSet })
		})
		if len(device.Claims) > 0 && draws {
			blockers = append(blockers, Blocker{device.Name, device.Claims})
		}
	}
	return blockers
}

// UnusableReason says why the device cannot be used, if so.
func (d *Device) UnusableReason() string {
	reasons := ListReasons(d.Claims, d.Taints)
	switch {
	case d.notReadyNode != "":
		reasons = append(reasons, DescribeNotReady(d.notReadyNode))
	case d.incomplete != "":
		reasons = append(reasons, d.incomplete)
	case d.BlockedBy != "":
		text := "no " + d.BlockedBy + " left"
		var names []string
		for _, blocker := range d.Blockers {
			claims, pods := ClaimsAndPods(blocker.Claims)
			who := "Pod " + strings.Join(pods, ", ")
			if len(pods) == 0 {
				who = "claim " + strings.Join(claims, ", ")
			}
			names = append(names, blocker.Device+" ("+who+")")
		}
		if len(names) > 0 {
			text = d.BlockedBy + " taken by " + strings.Join(names, ", ")
		}
		reasons = append(reasons, text)
	}
	return strings.Join(reasons, "; ")
}

// ListReasons returns why preparing fails, and taints.
func ListReasons(claims []inventory.Claim, taints []inventory.Taint) []string {
	var reasons []string
	for _, claim := range claims {
		if claim.Failure != "" && !slices.Contains(reasons, claim.Failure) {
			reasons = append(reasons, claim.Failure)
		}
	}
	for _, taint := range taints {
		text := fmt.Sprintf("%s=%s:%s", taint.Key, taint.Value, taint.Effect)
		if taint.Rule != "" {
			text += " (DeviceTaintRule " + taint.Rule + ")"
		}
		reasons = append(reasons, text)
	}
	return reasons
}

// ClaimsAndPods names claims, and the Pods that they are reserved for.
func ClaimsAndPods(all []inventory.Claim) (claims, pods []string) {
	for _, claim := range all {
		claims = append(claims, claim.Namespace+"/"+claim.Name)
		for _, pod := range claim.Pods {
			pods = append(pods, claim.Namespace+"/"+pod)
		}
	}
	slices.Sort(pods)
	return claims, slices.Compact(pods)
}

// DescribeNotReady says why no device of a node can be used.
func DescribeNotReady(node string) string { return "node " + node + " is not Ready" }
