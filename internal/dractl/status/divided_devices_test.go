package status

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
)

// divided are the slices of a node with GPUs that are published whole and in halves, and
// with a NIC that claims share.
func divided(node string) []runtime.Object {
	sets, devices := slice(node, 2), slice(node, 2)
	sets.Name, devices.Name = "sets", "devices"
	for _, gpu := range []string{"gpu-0", "gpu-1"} {
		sets.Spec.SharedCounters = append(sets.Spec.SharedCounters, resourcev1.CounterSet{Name: gpu, Counters: memory("80Gi")})
		for name, amount := range map[string]string{gpu: "80Gi", gpu + "-half-10": "40Gi", gpu + "-half-2": "40Gi"} {
			devices.Spec.Devices = append(devices.Spec.Devices, resourcev1.Device{
				Name: name, ConsumesCounters: []resourcev1.DeviceCounterConsumption{{CounterSet: gpu, Counters: memory(amount)}},
			})
		}
	}
	devices.Spec.Devices = append(devices.Spec.Devices, resourcev1.Device{
		Name: "nic", AllowMultipleAllocations: new(true), Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"bandwidth": {Value: resource.MustParse("100G")}},
	})
	return []runtime.Object{sets, devices}
}

func memory(amount string) map[string]resourcev1.Counter {
	return map[string]resourcev1.Counter{"memory": {Value: resource.MustParse(amount)}}
}

// TestDividedDevices: parts are below their device, and what is taken otherwise is
// not free.
func TestDividedDevices(t *testing.T) {
	t.Parallel()
	shares := claim("shares", "n", []string{"nic"})
	result := &shares.Status.Allocation.Devices.Results[0]
	result.ShareID, result.ConsumedCapacity = new(types.UID("1")), map[resourcev1.QualifiedName]resource.Quantity{"bandwidth": resource.MustParse("25G")}
	shares.Status.Devices = []resourcev1.AllocatedDeviceStatus{{
		Driver: driver, Pool: "n", Device: "nic", ShareID: new("1"),
		Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: "LinkDown"}},
	}}
	w, err := readCluster(t.Context(), fake.NewClientset(append(divided("n"), claim("whole", "n", []string{"gpu-0"}), claim("half", "n", []string{"gpu-1-half-2"}), shares)...), "")
	require.NoError(t, err)
	var out strings.Builder
	require.NoError(t, deviceTable(w.listDevices("n"), nil).Print(&out, output.Table))
	require.Equal(t, `DEVICE            STATE       USED     PRODUCT   MEMORY   UUID     CLAIM            POD      REASON
gpu-0             allocated   <none>   <none>    <none>   <none>   default/whole    <none>   <none>
  gpu-0-half-2    blocked     <none>   <none>    <none>   <none>   <none>           <none>   counter memory of gpu-0 taken by gpu-0 (claim default/whole)
  gpu-0-half-10   blocked     <none>   <none>    <none>   <none>   <none>           <none>   counter memory of gpu-0 taken by gpu-0 (claim default/whole)
gpu-1             blocked     <none>   <none>    <none>   <none>   <none>           <none>   counter memory of gpu-1 taken by gpu-1-half-2 (claim default/half)
  gpu-1-half-2    allocated   <none>   <none>    <none>   <none>   default/half     <none>   <none>
  gpu-1-half-10   free        <none>   <none>    <none>   <none>   <none>           <none>   <none>
nic               failing     25%      <none>    <none>   <none>   default/shares   <none>   LinkDown
`, out.String())
	out.Reset()
	require.NoError(t, w.newOverview(t.Context(), &filter{}).listTables(output.Table).Print(&out, output.Layout{}))
	require.Contains(t, out.String(), `
PRODUCT          DRIVER            NODES   DEVICES   USED     FREE   BLOCKED   ALLOCATED   PREPARED   FAILING
<none>           gpu.example.com   1       3         58%      0      1         1           0          1
<none> (parts)   gpu.example.com   1       4         <none>   1      2         1           0          0
`)
}

// TestNoWhole: devices of which none is the whole are not parts of one another.
func TestNoWhole(t *testing.T) {
	t.Parallel()
	objects := divided("n")
	devices := objects[1].(*resourcev1.ResourceSlice)
	devices.Spec.Devices = devices.Spec.Devices[:0]
	for _, name := range []string{"a", "b"} {
		devices.Spec.Devices = append(devices.Spec.Devices, resourcev1.Device{
			Name: name, ConsumesCounters: []resourcev1.DeviceCounterConsumption{{CounterSet: "gpu-0", Counters: memory("40Gi")}},
		})
	}
	w, err := readCluster(t.Context(), fake.NewClientset(objects...), "")
	require.NoError(t, err)
	for _, device := range w.listDevices("n") {
		require.Empty(t, device.Whole)
	}
}
