package simulator

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// outcome is where Pods went, with their devices.
func outcome(t *testing.T, world *World, pods []*corev1.Pod) string {
	t.Helper()
	scheduler := NewScheduler(world)
	var lines []string
	for _, pod := range InOrder(pods) {
		placement := scheduler.Schedule(t.Context(), pod)
		line := pod.Name + ": " + placement.Node
		for _, claim := range placement.Claims {
			if claim.Status.Allocation != nil {
				for _, result := range claim.Status.Allocation.Devices.Results {
					line += " " + result.Request + "=" + result.Device
				}
			}
		}
		if placement.Node == "" {
			line = strings.TrimSuffix(line, " ") + "; " + strings.Join(placement.Reasons(t.Context(), scheduler), "; ")
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

const sharedClaim = `
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: shared}
spec: {devices: ` + one + `}
---
`

// sharing is a Pod that uses the claim that Pods share.
func sharing(name, fields string) string {
	return `
apiVersion: v1
kind: Pod
metadata: {name: ` + name + `}
spec: {containers: [{name: c, image: i}], resourceClaims: [{name: gpu, resourceClaimName: shared}]` + fields + `}
---
`
}

// plainPod is a Pod without claims.
func plainPod(name, fields string) string {
	return `
apiVersion: v1
kind: Pod
metadata: {name: ` + name + `}
spec: {` + fields + `}
---
`
}

func TestSchedule(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		world         *World
		objects, want string
	}{
		"Pods go where the fewest are": {
			gpus(2, 2), pod("a", one) + pod("b", one) + pod("c", one),
			"a: node-0000 gpu=gpu-0\nb: node-0001 gpu=gpu-0\nc: node-0000 gpu=gpu-1",
		},
		"by priority": {
			gpus(1, 1), pod("a", one) + plainPod("late", "priority: -5") + plainPod("early", "priority: 5"),
			"early: node-0000\na: node-0000 gpu=gpu-0\nlate: node-0000",
		},
		"a claim that is shared": {
			gpus(2, 1), sharedClaim + sharing("a", "") + sharing("b", ""),
			"a: node-0000 gpu=gpu-0\nb: node-0000 gpu=gpu-0",
		},
		"a claim that is shared is elsewhere": {
			gpus(2, 1), sharedClaim + sharing("a", ", nodeSelector: {name: node-0001}") + sharing("b", ", nodeSelector: {name: node-0000}"),
			"a: node-0001 gpu=gpu-0\nb:  gpu=gpu-0; claim shared has device gpu.example.com/node-0001/gpu-0 already, by default/a, and the Pod cannot go there: node node-0001: the Pod's nodeSelector or node affinity does not match; node node-0000: claim shared: its devices are elsewhere",
		},
		"a claim that there is not": {gpus(1, 1), sharing("a", ""), `a:; resourceclaim "shared" not found: give its file with -f`},
		"a claim twice": {
			gpus(1, 2), sharedClaim + strings.Replace(sharing("a", ""), "resourceClaims: [", "resourceClaims: [{name: again, resourceClaimName: shared}, ", 1),
			`a:; spec.resourceClaims[1]: resourceclaim "shared" is there twice, and the scheduler fails to reserve it twice: leave one out`,
		},
		"a class that there is not": {
			gpus(1, 1), pod("a", `{requests: [{name: gpu, exactly: {deviceClassName: none}}]}`),
			`a:; resourceclaim "a-gpu", request gpu: deviceclass "none" not found: give its file with -f`,
		},
		"a gate": {gpus(1, 1), plainPod("a", "schedulingGates: [{name: wait}]"), `a:; spec.schedulingGates: the Pod waits for "wait" to be removed`},
		"the first alternative, on another node": {
			gpus(2, 1), pod("a", one) + pod("b", `{requests: [{name: gpu, firstAvailable: [{name: h, deviceClassName: gpu, selectors: [{cel: {expression: "device.attributes['gpu.example.com'].index == 0"}}]}, {name: any, deviceClassName: gpu}]}]}`),
			"a: node-0000 gpu=gpu-0\nb: node-0001 gpu/h=gpu-0",
		},
		"a selector that fails anywhere": {
			gpus(1, 1), pod("a", `{requests: [{name: gpu, exactly: {deviceClassName: gpu, selectors: [{cel: {expression: "device.attributes['gpu.example.com'].none"}}]}}]}`),
			"a:; on node node-0000: claim default/a-gpu: selector #0 on device gpu.example.com/node-0000/gpu-0: CEL runtime error: no such key: none. consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional fields",
		},
		"a selector that fails for a device that is looked at only if the first alternative has to do": {
			gpus(1, 2), pod("a", `{requests: [{name: gpu, exactly: {deviceClassName: gpu, selectors: [{cel: {expression: "device.attributes['gpu.example.com'].index == 0 || device.attributes['gpu.example.com'].none"}}]}}, `+
				`{name: other, firstAvailable: [{name: h, deviceClassName: gpu, selectors: [{cel: {expression: "device.attributes['gpu.example.com'].index == 5"}}]}, {name: any, deviceClassName: gpu}]}]}`),
			"a: node-0000 gpu=gpu-0 other/any=gpu-1",
		},
		"a selector leaves too few": {
			gpus(2, 4), pod("a", `{requests: [{name: gpu, exactly: {deviceClassName: gpu, count: 3, selectors: [{cel: {expression: "device.attributes['gpu.example.com'].model == 'A100'"}}]}}]}`),
			"a:; no node has as many devices: node node-0000 has the most, 2, of 4 devices of class gpu that match `device.attributes['gpu.example.com'].model == 'A100'` on 2 nodes; request gpu wants 3 on one node",
		},
		"others have them": {
			gpus(1, 2), pod("a", one) + pod("b", `{requests: [{name: gpu, exactly: {deviceClassName: gpu, count: 2}}]}`),
			"a: node-0000 gpu=gpu-0\nb:; only 1 of 2 devices of class gpu on 1 node can be had: 1 allocated (default/a 1); request gpu wants 2 on one node; nearest: node node-0000 lacks 1",
		},
		"a constraint": {
			gpus(1, 8), pod("a", `{requests: [{name: gpu, exactly: {deviceClassName: gpu, count: 5}}], constraints: [{matchAttribute: gpu.example.com/root}]}`),
			"a:; matchAttribute gpu.example.com/root: no node has 5 devices with the same value, the most is 4 on node node-0000; 8 devices of class gpu on 1 node, 8 left; request gpu wants 5 on one node",
		},
		"a derived attribute": {
			gpus(1, 4), pod("a", `{requests: [{name: gpu, exactly: {deviceClassName: gpu, count: 2, derivedAttributes: [{name: derived/pair, expression: "(device.attributes['gpu.example.com'].index + 1) / 2"}]}}], constraints: [{matchAttribute: derived/pair}]}`),
			"a: node-0000 gpu=gpu-1 gpu=gpu-2",
		},
		"the requests before": {
			gpus(1, 2), pod("a", `{requests: [{name: one, exactly: {deviceClassName: gpu}}, {name: two, exactly: {deviceClassName: gpu, count: 2}}]}`),
			"a:; on node node-0000 the requests before it leave 1 of 2 devices; 2 devices of class gpu on 1 node, 2 left; request two wants 2 on one node",
		},
		"all, of which one is taken": {
			gpus(1, 2), pod("a", one) + pod("b", `{requests: [{name: gpu, exactly: {deviceClassName: gpu, allocationMode: All}}]}`),
			"a: node-0000 gpu=gpu-0\nb:; the request wants all devices of a node, and no node has all of them free: only 1 of 2 devices of class gpu on 1 node can be had: 1 allocated (default/a 1); request gpu wants all",
		},
		"admin access takes nothing": {
			gpus(1, 1), pod("a", `{requests: [{name: gpu, exactly: {deviceClassName: gpu, adminAccess: true}}]}`) + pod("b", one),
			"a: node-0000 gpu=gpu-0\nb: node-0000 gpu=gpu-0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pods := parse(t, test.world, test.objects)
			require.Equal(t, test.want, outcome(t, test.world, pods))
		})
	}
}

// TestNodes has nodes that keep Pods away.
func TestNodes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change    func(*World)
		pod, want string
	}{
		"a taint": {func(w *World) {
			w.Nodes[0].Spec.Taints = []corev1.Taint{{Key: "k", Value: "v", Effect: corev1.TaintEffectNoSchedule}}
		}, "", "a:; no node admits the Pod: node node-0000: the Pod does not tolerate the taint k=v:NoSchedule"},
		"a taint that is tolerated": {func(w *World) {
			w.Nodes[0].Spec.Taints = []corev1.Taint{{Key: "k", Value: "v", Effect: corev1.TaintEffectNoSchedule}}
		}, "tolerations: [{operator: Exists}]", "a: node-0000"},
		"cordoned": {func(w *World) { w.Nodes[0].Spec.Unschedulable = true }, "", "a:; no node admits the Pod: node node-0000: the node is cordoned"},
		"affinity": {
			func(*World) {}, "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: x, operator: Exists}]}]}}}",
			"a:; no node admits the Pod: no node has the label x Exists, which the Pod's nodeSelector or node affinity asks for; node node-0000: the Pod's nodeSelector or node affinity does not match",
		},
		"no node at all": {func(w *World) { w.Nodes = nil }, "", "a:; there are no nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			world := gpus(1, 1)
			test.change(world)
			pods := parse(t, world, plainPod("a", test.pod))
			require.Equal(t, test.want, outcome(t, world, pods))
		})
	}
}

// TestPreferences has a Pod that wants one node more than another.
func TestPreferences(t *testing.T) {
	t.Parallel()
	world := gpus(3, 1)
	world.Nodes[1].Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectPreferNoSchedule}}
	world.Pods = []*corev1.Pod{{Spec: corev1.PodSpec{NodeName: "node-0000"}}}
	pods := parse(t, world, plainPod("a", "")+
		plainPod("b", "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: name, operator: In, values: [node-0000]}]}}]}}")+
		plainPod("c", "tolerations: [{operator: Exists}]"))
	require.Equal(t, "a: node-0002\nb: node-0000\nc: node-0001", outcome(t, world, pods))
}

// TestDeviceTaints has devices with taints of their own, and of rules.
func TestDeviceTaints(t *testing.T) {
	t.Parallel()
	world := gpus(1, 3)
	world.Slices[0].Spec.Devices[0].Taints = []resourcev1.DeviceTaint{{Key: "broken", Effect: resourcev1.DeviceTaintEffectNoExecute}}
	pods := parse(t, world, `
apiVersion: resource.k8s.io/v1beta2
kind: DeviceTaintRule
metadata: {name: rule}
spec: {deviceSelector: {driver: gpu.example.com, device: gpu-1}, taint: {key: rule, effect: NoSchedule}}
---
`+pod("a", `{requests: [{name: gpu, exactly: {deviceClassName: gpu, count: 2}}]}`)+
		pod("b", `{requests: [{name: gpu, exactly: {deviceClassName: gpu, count: 2, tolerations: [{key: rule, operator: Exists}]}}]}`))
	require.Equal(t, "a:; only 1 of 3 devices of class gpu on 1 node can be had: 2 tainted (broken:NoExecute 1, rule:NoSchedule of DeviceTaintRule rule 1), which the request does not tolerate; request gpu wants 2 on one node; nearest: node node-0000 lacks 1\nb: node-0000 gpu=gpu-1 gpu=gpu-2", outcome(t, world, pods))
	require.Empty(t, world.Slices[0].Spec.Devices[1].Taints, "the world is not changed")
}

// TestAllocated has claims that have devices already.
func TestAllocated(t *testing.T) {
	t.Parallel()
	world := gpus(1, 2)
	pods := parse(t, world, `
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: old}
spec: {devices: `+one+`}
status: {allocation: {devices: {results: [{request: gpu, driver: gpu.example.com, pool: node-0000, device: gpu-0}]}}}
---
`+pod("a", one)+pod("b", one))
	require.Equal(t, "a: node-0000 gpu=gpu-1\nb:; all 2 devices of class gpu on 1 node are allocated (claim default/old without a Pod 1, default/a 1); request gpu wants 1; nearest: node node-0000 lacks 1", outcome(t, world, pods))
}

// TestIncompletePool has a pool of which a slice is missing.
func TestIncompletePool(t *testing.T) {
	t.Parallel()
	world := gpus(1, 2)
	world.Slices[0].Spec.Pool.ResourceSliceCount = 2
	pods := parse(t, world, pod("a", one))
	require.Equal(t, "a:; pool node-0000 of driver gpu.example.com is incomplete (1 of 2 slices of generation 1), so none of its devices can be had until the driver has published all its slices; request gpu wants 1", outcome(t, world, pods))
}

// TestMore counts what fits, and leaves the scheduler as it is.
func TestMore(t *testing.T) {
	t.Parallel()
	world := gpus(3, 4)
	pods := parse(t, world, pod("a", `{requests: [{name: gpu, exactly: {deviceClassName: gpu, count: 2}}]}`)+pod("b", one))
	scheduler := NewScheduler(world)
	require.Equal(t, "node-0000", scheduler.Schedule(t.Context(), pods[0]).Node)
	for range 2 {
		more, then := scheduler.More(t.Context(), pods[0])
		require.Equal(t, 5, more)
		require.Equal(t, []string{"all 12 devices of class gpu on 3 nodes are allocated (default/a 2, default/a-more-0 2, default/a-more-1 2, and 3 more); request gpu wants 2 on one node; nearest: node node-0000 lacks 2"}, then)
	}
	require.Equal(t, "node-0001", scheduler.Schedule(t.Context(), pods[1]).Node, "the trial took nothing")
}
