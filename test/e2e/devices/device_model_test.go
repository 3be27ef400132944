package devices

import (
	"fmt"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// TestDeviceModel has the stories of pools that are more than like devices of one
// node, on one cluster with the fast Stages. The real scheduler says what fits.
func TestDeviceModel(t *testing.T) {
	t.Parallel()
	stages := append(harness.FastStages(t), harness.KwokFile(t, "kustomize/stage/node/chaos/node-not-ready.yaml"))
	h := harness.New(t, harness.AllFeatures(cluster.Options{Config: stages}))
	h.Sidecar()
	for name, test := range map[string]func(*harness.H){
		"WholeOrPartition":       testWholeOrPartition,
		"SevenPartitions":        testSevenPartitions,
		"Placements":             testPlacements,
		"PartitionNames":         testPartitionNames,
		"PartitionTainted":       testPartitionTainted,
		"SharedCounters":         testSharedCounters,
		"CountersOfThreeDevices": testCountersOfThreeDevices,
		"CountersOfSharedPool":   testCountersOfSharedPool,
		"ManyPartitions":         testManyPartitions,
		"FourThousandDevices":    testFourThousandDevices,
		"ExplicitSlices":         testExplicitSlices,
		"TaintSplitsSlice":       testTaintSplitsSlice,
		"AllNodes":               testAllNodes,
		"AllNodesShareAClaim":    testAllNodesShareAClaim,
		"SelectedNodes":          testSelectedNodes,
		"PerDeviceNodeSelection": testPerDeviceNodeSelection,
		"SharedNotReady":         testSharedNotReady,
		"SharedRetires":          testSharedRetires,
		"SharedEditedByHand":     testSharedEditedByHand,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(h.On(t))
		})
	}
}

// modelScene makes a namespace, a node and a template of that name, with more
// fields in its spec, and waits for the pool with that many devices.
func modelScene(h *harness.H, name, fields, devices string, count int) []resourcev1.ResourceSlice {
	h.Helper()
	h.Configure(name, harness.WithSpec(harness.Template(name, harness.Driver, name, devices), fields))
	h.CreateNode(name, name)
	pool := h.Published(name, harness.Driver, count)
	h.Namespace(name, harness.Driver)
	return pool
}

// selecting is a claim of one device of the class that an expression selects,
// which knows the driver's attributes as "is".
func selecting(class, driver, expression string) resourcev1.ResourceClaimSpec {
	spec := harness.ClaimSpec(class)
	spec.Devices.Requests[0].Exactly.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
		Expression: fmt.Sprintf(`cel.bind(is, device.attributes[%q], %s)`, driver, expression),
	}}}
	return spec
}

// asks has a Pod claim a device that an expression selects, in the namespace and
// on the node of a scene.
func asks(h *harness.H, scene, pod, expression string) {
	h.Helper()
	h.CreateClaim(scene, pod, selecting(scene, harness.Driver, expression))
	h.CreatePod(scene, harness.NewPod(pod, scene, pod))
}

// gets has a Pod run with a device that an expression selects, and returns the
// device's name.
func gets(h *harness.H, scene, pod, expression string) string {
	h.Helper()
	asks(h, scene, pod, expression)
	return got(h, scene, pod)
}

// got is the device with which a Pod runs.
func got(h *harness.H, scene, pod string) string {
	h.Helper()
	h.Running(scene, pod)
	return h.Entries(scene, pod, 1).Status.Devices[0].Device
}

// getsNone has a Pod wait, since no device that an expression selects is left.
func getsNone(h *harness.H, scene, pod, expression string) {
	h.Helper()
	asks(h, scene, pod, expression)
	h.Unschedulable(scene, pod)
}

// frees ends a Pod, and with it the use of its device.
func frees(h *harness.H, scene, pod string) {
	h.Helper()
	h.DeletePod(scene, pod, 0)
	h.Gone(scene, pod)
}
