package timeline

import (
	"slices"

	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
)

// Kind is a kind of change.
type Kind string

// The kinds. But for the first two, each is named for what the device is after it.
const (
	// Published devices were not there before.
	Published Kind = "published"
	// Retired devices are no longer there.
	Retired Kind = "retired"
	// Allocated devices have been given to a claim.
	Allocated Kind = "allocated"
	// Prepared devices are prepared for a claim, which may have got them a moment before.
	Prepared Kind = "prepared"
	// Released devices have no claim any more, or no taint.
	Released Kind = "released"
	// Tainted devices have a taint that keeps Pods away.
	Tainted Kind = "tainted"
	// Failed devices cannot be prepared, or are not ready.
	Failed Kind = "failed"
)

// ofState maps the state after a change to its kind. A free device that becomes blocked is no change:
// the claim or node that blocks it has its own.
var ofState = map[inventory.State]Kind{
	inventory.Free: Released, inventory.Blocked: Released, inventory.Allocated: Allocated,
	inventory.Prepared: Prepared, inventory.Failing: Failed, inventory.Tainted: Tainted,
}

// kindOf returns the kind of a change, or "" if nobody needs to know it.
func kindOf(before, after *inventory.Device) Kind {
	switch {
	case before == nil:
		return Published
	case after == nil:
		return Retired
	case ofState[before.State] != ofState[after.State]:
		return ofState[after.State]
	case after.State == inventory.Tainted: // claims do not matter then
		return ""
	case hasGained(before, after):
		return ofState[after.State]
	case hasGained(after, before):
		return Released
	}
	return ""
}

// hasGained reports whether a claim has the device now that did not have it before.
func hasGained(before, after *inventory.Device) bool {
	had := claimNames(before, false)
	return slices.ContainsFunc(claimNames(after, false), func(name string) bool { return !slices.Contains(had, name) })
}

// claimNames returns the claims that have a device, with or without those that only observe it.
func claimNames(device *inventory.Device, observing bool) []string {
	var names []string
	for i := range device.Claims {
		if claim := &device.Claims[i]; observing || !claim.AdminAccess {
			names = append(names, claim.Namespace+"/"+claim.Name)
		}
	}
	return names
}
