package preview

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice/features"
)

// The minor releases of Kubernetes 1 that are supported.
const (
	oldestRelease = 34
	newestRelease = 37
)

// gateReleases are the minor releases of Kubernetes 1 that first have a feature
// gate with the fields that it has now, and that first have it on by default, or
// 0 for none.
var gateReleases = map[string]struct{ since, on uint }{
	"DRADeviceTaints":              {oldestRelease, 36},
	"DRAConsumableCapacity":        {oldestRelease, 36},
	"DRADeviceBindingConditions":   {oldestRelease, 36},
	"DRAPartitionableDevices":      {oldestRelease, 36},
	"DRAListTypeAttributes":        {36, 0},
	"DRANodeAllocatableResources":  {37, 0},
	"DRAPartitionableDevicesType":  {37, 0},
	"DRADeviceCompatibilityGroups": {37, 0},
	"DRAOptionalNodeOperations":    {37, 0},
}

// Release is a release of Kubernetes, and which of its feature gates are on. It knows
// which fields of slices are kept without an API server.
type Release struct {
	minor uint
	gates map[string]bool
}

// NewRelease reads a version, such as 1.34 or v1.36.3. Gates are those that are
// not as they are by default.
func NewRelease(text string, gates map[string]bool) (Release, error) {
	parsed, err := version.ParseGeneric(text)
	if err != nil || parsed.Major() != 1 || parsed.Minor() < oldestRelease || parsed.Minor() > newestRelease {
		return Release{}, fmt.Errorf("parse Kubernetes version %q: must be 1.%d to 1.%d", text, oldestRelease, newestRelease)
	}
	release := Release{minor: parsed.Minor(), gates: gates}
	for _, gate := range slices.Sorted(maps.Keys(gates)) {
		known, ok := gateReleases[gate]
		if !ok {
			return Release{}, fmt.Errorf("feature gate %s: must be one that devices depend on: %s", gate, strings.Join(slices.Sorted(maps.Keys(gateReleases)), ", "))
		}
		if gates[gate] && known.since > release.minor {
			return Release{}, fmt.Errorf("feature gate %s: Kubernetes 1.%d does not have it, 1.%d does", gate, release.minor, known.since)
		}
	}
	return release, nil
}

// EverythingOn is a release with all the feature gates turned on that it has.
func EverythingOn(version string) (Release, error) {
	release, err := NewRelease(version, nil)
	release.gates = map[string]bool{}
	for gate, known := range gateReleases {
		release.gates[gate] = known.since <= release.minor
	}
	return release, err
}

// Releases are the versions that NewRelease accepts, the newest first.
func Releases() []string {
	var versions []string
	for minor := newestRelease; minor >= oldestRelease; minor-- {
		versions = append(versions, fmt.Sprintf("1.%d", minor))
	}
	return versions
}

// Keeps implements features.Server.
func (r Release) Keeps(_ context.Context, field *features.Field) (bool, error) {
	if on, given := r.gates[field.Gate]; given {
		return on, nil
	}
	on := gateReleases[field.Gate].on
	return on != 0 && on <= r.minor, nil
}

// Layout implements features.Server.
func (r Release) Layout() devices.Layout {
	if r.minor == oldestRelease {
		return devices.CountersWithDevices
	}
	return devices.CountersApart
}
