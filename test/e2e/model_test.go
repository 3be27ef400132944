package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/cluster"
)

// TestDeviceModel has the stories of pools that are more than like devices of one
// node, on one cluster with the fast Stages. The real scheduler says what fits.
func TestDeviceModel(t *testing.T) {
	t.Parallel()
	stages := append(fastStages(t), kwokFile(t, "kustomize/stage/node/chaos/node-not-ready.yaml"))
	h := newHarness(t, allFeatures(cluster.Options{Config: stages}))
	h.sidecar()
	for name, test := range map[string]func(*harness){
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
			test(h.on(t))
		})
	}
}

// modelScene makes a namespace, a node and a template of that name, with more
// fields in its spec, and waits for the pool with that many devices.
func (h *harness) modelScene(name, fields, devices string, count int) []resourcev1.ResourceSlice {
	h.Helper()
	h.configure(name, withSpec(template(name, driver, name, devices), fields))
	h.createNode(name, name)
	pool := h.published(name, driver, count)
	h.namespace(name, driver)
	return pool
}

// selecting is a claim of one device of the class that an expression selects,
// which knows the driver's attributes as "is".
func selecting(class, driver, expression string) resourcev1.ResourceClaimSpec {
	spec := claimSpec(class)
	spec.Devices.Requests[0].Exactly.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
		Expression: fmt.Sprintf(`cel.bind(is, device.attributes[%q], %s)`, driver, expression),
	}}}
	return spec
}

// asks has a Pod claim a device that an expression selects, in the namespace and
// on the node of a scene.
func (h *harness) asks(scene, pod, expression string) {
	h.Helper()
	h.createClaim(scene, pod, selecting(scene, driver, expression))
	h.createPod(scene, newPod(pod, scene, pod))
}

// gets has a Pod run with a device that an expression selects, and returns the
// device's name.
func (h *harness) gets(scene, pod, expression string) string {
	h.Helper()
	h.asks(scene, pod, expression)
	return h.got(scene, pod)
}

// got is the device with which a Pod runs.
func (h *harness) got(scene, pod string) string {
	h.Helper()
	h.running(scene, pod)
	return h.entries(scene, pod, 1).Status.Devices[0].Device
}

// getsNone has a Pod wait, since no device that an expression selects is left.
func (h *harness) getsNone(scene, pod, expression string) {
	h.Helper()
	h.asks(scene, pod, expression)
	h.unschedulable(scene, pod)
}

// unschedulable waits until the scheduler has tried a Pod in vain.
func (h *harness) unschedulable(namespace, name string) {
	h.Helper()
	h.podEventually(namespace, name, func(pod *corev1.Pod) bool {
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonUnschedulable {
				return true
			}
		}
		return false
	})
}

// frees ends a Pod, and with it the use of its device.
func (h *harness) frees(scene, pod string) {
	h.Helper()
	h.deletePod(scene, pod, 0)
	h.gone(scene, pod)
}

// deviceNamed finds a device of a pool.
func deviceNamed(t require.TestingT, pool []resourcev1.ResourceSlice, name string) resourcev1.Device {
	for _, slice := range pool {
		for _, device := range slice.Spec.Devices {
			if device.Name == name {
				return device
			}
		}
	}
	require.Failf(t, "no such device", "device %s is not among %v", name, deviceNames(pool))
	return resourcev1.Device{}
}

// slicesBy lists the slices of a driver, by name.
func (h *harness) slicesBy(driver string) []resourcev1.ResourceSlice {
	h.Helper()
	list, err := h.client.ResourceV1().ResourceSlices().List(h.Context(), metav1.ListOptions{FieldSelector: "spec.driver=" + driver})
	require.NoError(h, err)
	return list.Items
}
