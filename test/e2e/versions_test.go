package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/cluster/build"
)

// kubernetesMinor is the minor version of the Kubernetes that tests run on by
// default.
func kubernetesMinor() int {
	versions, err := build.Versions{}.Resolve()
	if err != nil {
		panic(err) // no cluster would start
	}
	minor := 0
	_, _ = fmt.Sscanf(versions.Kubernetes, "v1.%d.", &minor)
	return minor
}

// alphaDevices tells whether what devices can do is still behind gates that are
// off by default, as before Kubernetes 1.36.
func alphaDevices() bool { return kubernetesMinor() < 36 }

// needs skips the test on releases before 1.<minor>, with the reason.
func (h *harness) needs(minor int, reason string) {
	h.Helper()
	if have := kubernetesMinor(); have < minor {
		h.Skipf("Kubernetes 1.%d: %s", have, reason)
	}
}

// allFeatures turns on what the tests need and older releases have off.
func allFeatures(o cluster.Options) cluster.Options {
	if alphaDevices() {
		o.FeatureGates = map[string]bool{
			"DRAConsumableCapacity": true, "DRADeviceBindingConditions": true, "DRADeviceTaints": true,
			"DRAExtendedResource": true, "DRAPartitionableDevices": true, "ResourceHealthStatus": true,
		}
		o.RuntimeConfig = map[string]bool{"resource.k8s.io/v1alpha3": true}
	}
	return o
}

// TestOlderKwok has Pods held back by the project's pod-ready with the kwok
// releases whose own pod-ready is another.
func TestOlderKwok(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"0.6.1", "0.7.0"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, cluster.Options{KwokVersion: version, Config: fastStages(t)})
			h.configure("configuration", knobs)
			h.sidecar()
			h.scene("older", "")
			held := newPod("held", "older", fromTemplate)
			held.Labels = map[string]string{"hold": "true"}
			h.createPod("older", held)
			h.createPod("older", newPod("plain", "older"))
			h.createPod("older", newPod("prepared", "older", fromTemplate))
			h.running("older", "plain")
			require.True(t, isReady(h.running("older", "prepared")))
			require.Len(t, h.claimOf("older", "prepared").Status.Devices, 1)
			require.Equal(t, "Pending", string(h.pod("older", "held").Status.Phase))
			h.patchPod("older", "held", `{"metadata": {"labels": {"hold": null}}}`)
			h.running("older", "held")
			for _, pod := range []string{"plain", "prepared", "held"} {
				h.deletePod("older", pod, 1)
				h.gone("older", pod)
			}
		})
	}
}
