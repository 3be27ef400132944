package preview

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/resourceslice/features"
	"github.com/kwok-dra/kwok-dra/internal/testing/configtest"
)

const (
	divided = "{name: gpu, count: 2, counters: {m: 2}, partitions: [{name: p, count: 2, consumes: {m: 1}}]}"
	tainted = "{name: tainted, count: 2, taints: [{key: k, effect: NoSchedule}]}"
)

// template is a document. The devices are in YAML's flow form.
func template(name, driver, devices string) string {
	return "---\napiVersion: dra.kwok.x-k8s.io/v1alpha1\nkind: ResourcePoolTemplate\nmetadata: {name: " + name + "}\n" +
		"spec:\n  driver: " + driver + "\n  devices: [" + devices + "]\n"
}

// TestRelease: which fields a release keeps without being asked.
func TestRelease(t *testing.T) {
	t.Parallel()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u"},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	set := configtest.SetOf(t, template("a", "d", divided)+template("b", "e", tainted))
	for name, test := range map[string]struct {
		version string
		gates   map[string]bool
		slices  int
		dropped []string
	}{
		"1.37":            {"1.37", nil, 3, nil},
		"1.36":            {"v1.36.3", nil, 3, nil},
		"1.36 with a off": {"1.36", map[string]bool{"DRADeviceTaints": false}, 3, []string{"b taints"}},
		"1.35":            {"1.35", nil, 1, []string{"a consumesCounters", "b taints"}},
		"1.35 with on":    {"1.35", map[string]bool{"DRAPartitionableDevices": true}, 3, []string{"b taints"}},
		"1.34 with on":    {"1.34", map[string]bool{"DRAPartitionableDevices": true, "DRADeviceTaints": true}, 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			release, err := NewRelease(test.version, test.gates)
			require.NoError(t, err)
			preview, err := New(t.Context(), release, Cluster{Config: set, Nodes: []*corev1.Node{node}})
			require.NoError(t, err)
			require.Len(t, preview.Create, test.slices)
			var dropped []string
			for _, one := range preview.Dropped {
				dropped = append(dropped, one.Source+" "+one.Field.Name)
			}
			require.Equal(t, test.dropped, dropped)
		})
	}
	for _, bad := range []string{"", "1", "1.33", "1.38", "2.0", "latest"} {
		_, err := NewRelease(bad, nil)
		require.ErrorContains(t, err, "must be 1.34 to 1.37", bad)
	}
	_, err := NewRelease("1.36", map[string]bool{"DRAOptionalNodeOperations": true})
	require.ErrorContains(t, err, "1.37 does")
	_, err = NewRelease("1.36", map[string]bool{"Gate": true})
	require.ErrorContains(t, err, "must be one that devices depend on")
}

// TestEveryGateHasItsReleases: a gate that is forgotten would count as off.
func TestEveryGateHasItsReleases(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, field := range features.Fields {
		require.Contains(t, gateReleases, field.Gate)
		used[field.Gate] = true
	}
	require.Len(t, gateReleases, len(used))
}
