package harness

import (
	"fmt"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/cluster/build"
)

// EveryFeature turns on all that ResourceSlices can have in the release, and the status
// of pools.
func EveryFeature() cluster.Options {
	options := AllFeatures(cluster.Options{})
	if KubernetesMinor() < 36 {
		return options
	}
	options.FeatureGates = map[string]bool{"DRAListTypeAttributes": true, "DRAResourcePoolStatus": true}
	options.RuntimeConfig = map[string]bool{"resource.k8s.io/v1alpha3": true}
	if KubernetesMinor() > 36 {
		for _, gate := range []string{
			"DRANodeAllocatableResources", "DRADeviceCompatibilityGroups", "DRAOptionalNodeOperations",
			"DRAPartitionableDevicesType", "DRAFractionalCapacityRange", "DRADerivedAttributes",
		} {
			options.FeatureGates[gate] = true
		}
	}
	return options
}

// KubernetesMinor is the minor version of the Kubernetes that tests run on by
// default.
func KubernetesMinor() int {
	versions, err := build.Versions{}.Resolve()
	if err != nil {
		panic(err) // no cluster would start
	}
	minor := 0
	_, _ = fmt.Sscanf(versions.Kubernetes, "v1.%d.", &minor)
	return minor
}

// AlphaDevices reports whether what devices can do is still behind gates that are
// off by default, as before Kubernetes 1.36.
func AlphaDevices() bool { return KubernetesMinor() < 36 }

// Needs skips the test on releases before 1.<minor>, with the reason.
func (h *H) Needs(minor int, reason string) {
	h.Helper()
	if have := KubernetesMinor(); have < minor {
		h.Skipf("Kubernetes 1.%d: %s", have, reason)
	}
}

// AllFeatures turns on what the tests need and older releases have off.
func AllFeatures(o cluster.Options) cluster.Options {
	if AlphaDevices() {
		o.FeatureGates = map[string]bool{
			"DRAConsumableCapacity": true, "DRADeviceBindingConditions": true, "DRADeviceTaints": true,
			"DRAExtendedResource": true, "DRAPartitionableDevices": true, "ResourceHealthStatus": true,
		}
		o.RuntimeConfig = map[string]bool{"resource.k8s.io/v1alpha3": true}
	}
	return o
}
