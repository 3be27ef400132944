package kubectldra

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// TestUnservedAPI has an API server without the API of devices, which no command waits for. A later one watches
// ResourceSlices itself, and is not ready without.
func TestUnservedAPI(t *testing.T) {
	t.Parallel()
	if harness.KubernetesMinor() > 34 {
		t.Skip("needs Kubernetes 1.34")
	}
	u := &user{T: t, cluster: cluster.ForTest(t, cluster.Options{
		Disable:       []string{cluster.ControllerManager, cluster.Scheduler, cluster.Kwok},
		FeatureGates:  map[string]bool{"DynamicResourceAllocation": false},
		RuntimeConfig: map[string]bool{"resource.k8s.io/v1": false},
	})}
	for _, command := range []string{"check", "claim train", "claims -w", "devices -w", "nodes -w", "overview -w", "pods -w"} {
		out, errOut, code := u.run("kubectl dra " + command)
		require.Equal(t, 2, code, command)
		require.Equal(t, "error: the API server does not serve resource.k8s.io/v1: use Kubernetes 1.34 or later, and do not switch the API off\n", out+errOut, command)
	}
}
