package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/pkg/dractl/output"
	"github.com/kwok-dra/kwok-dra/pkg/inventory"
	"github.com/kwok-dra/kwok-dra/pkg/natural"
)

// Device is a device of a node, with what a person asks first.
type Device struct {
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

	UUID    string            `json:"uuid,omitempty"`
	Product string            `json:"product,omitempty"`
	Memory  string            `json:"memory,omitempty"`
	Claims  []inventory.Claim `json:"claims,omitempty"`
	Taints  []inventory.Taint `json:"taints,omitempty"`
}

// devices are those of a node's own pools, and those that are gone, by driver, pool and name.
func (w *world) devices(node string) []Device {
	published := map[string]*resourcev1.Device{}
	beside := map[*resourcev1.Device][]resourcev1.Device{} // the devices of its slice
	for _, slice := range w.slices {
		for i := range slice.Spec.Devices {
			published[id(slice.Spec.Driver, slice.Spec.Pool.Name, slice.Spec.Pool.Generation, slice.Spec.Devices[i].Name)] = &slice.Spec.Devices[i]
			beside[&slice.Spec.Devices[i]] = slice.Spec.Devices
		}
	}
	devices := []Device{}
	taken := w.inventory()
	for _, item := range taken.Items {
		if item.Node != node {
			continue
		}
		for i := range item.Pools {
			pool := &item.Pools[i]
			for j := range pool.Devices {
				shown := deviceOf(pool.Driver, pool.Name, &pool.Devices[j])
				shown.Whole = taken.Kinds[pool.Kind].Whole(j)
				device := published[id(pool.Driver, pool.Name, pool.Generation, shown.Name)]
				shown.describe(device, beside[device])
				devices = append(devices, shown)
			}
		}
	}
	for i := range taken.Gone {
		if gone := &taken.Gone[i]; gone.Node == node {
			devices = append(devices, deviceOf(gone.Driver, gone.Pool, &gone.Device))
		}
	}
	slices.SortStableFunc(devices, func(a, b Device) int {
		return cmp.Or(cmp.Compare(a.Driver, b.Driver), natural.Compare(a.Pool, b.Pool),
			natural.Compare(cmp.Or(a.Whole, a.Name), cmp.Or(b.Whole, b.Name)), cmp.Compare(a.Whole, b.Whole), natural.Compare(a.Name, b.Name))
	})
	return devices
}

func deviceOf(driver, pool string, known *inventory.Device) Device {
	return Device{
		Driver: driver, Pool: pool, Name: known.Name, State: known.State,
		Shared: known.Shared, Used: known.Used, BlockedBy: known.BlockedBy, Claims: known.Claims, Taints: known.Taints,
	}
}

func id(driver, pool string, generation int64, device string) string {
	return fmt.Sprintf("%s/%s/%d/%s", driver, pool, generation, device)
}

func (d *Device) describe(published *resourcev1.Device, slice []resourcev1.Device) {
	known := inventory.Describe(d.Driver, published, slice)
	d.UUID, d.Product, d.Memory = known.UUID, known.Product, known.Memory
}

// deviceTable has devices, with the parts of a device below it.
func deviceTable(devices []Device) *output.Rows {
	shared := slices.ContainsFunc(devices, func(d Device) bool { return d.Shared })
	table := &output.Rows{Columns: []output.Column{
		{Name: "driver", Wide: true},
		{Name: "pool", Wide: true},
		{Name: "device"},
		{Name: "state"},
		{Name: "used", Wide: !shared},
		{Name: "product"},
		{Name: "memory"},
		{Name: "uuid"},
		{Name: "claim"},
		{Name: "pod"},
		{Name: "blocked by", Wide: true},
		{Name: "failure", Wide: !slices.ContainsFunc(devices, func(d Device) bool { return d.State == inventory.Failing })},
		{Name: "taints", Wide: true},
	}}
	for i := range devices {
		table.Add(devices[i].cells()...)
	}
	return table
}

func (d *Device) cells() []string {
	claims, pods := claimsAndPods(d.Claims)
	var failures, taints []string
	for _, claim := range d.Claims {
		if claim.Failure != "" {
			failures = append(failures, claim.Failure)
		}
	}
	for _, taint := range d.Taints {
		text := fmt.Sprintf("%s=%s:%s", taint.Key, taint.Value, taint.Effect)
		if taint.Rule != "" {
			text += " (DeviceTaintRule " + taint.Rule + ")"
		}
		taints = append(taints, text)
	}
	name, used := d.Name, ""
	if d.Whole != "" {
		name = "  " + name
	}
	if d.Shared {
		used = percent(float64(d.Used))
	}
	return []string{
		d.Driver, d.Pool, name, d.State.String(), orNone(used), orNone(d.Product), orNone(d.Memory), orNone(d.UUID),
		orNone(claims...), orNone(pods...), orNone(d.BlockedBy), orNone(slices.Compact(failures)...), orNone(taints...),
	}
}

// claimsAndPods names claims, and the Pods that they are reserved for.
func claimsAndPods(all []inventory.Claim) (claims, pods []string) {
	for _, claim := range all {
		claims = append(claims, claim.Namespace+"/"+claim.Name)
		for _, pod := range claim.Pods {
			pods = append(pods, claim.Namespace+"/"+pod)
		}
	}
	slices.Sort(pods)
	return claims, slices.Compact(pods)
}

func orNone(texts ...string) string {
	if joined := strings.Join(texts, ","); joined != "" {
		return joined
	}
	return "<none>"
}
