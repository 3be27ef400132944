package simulator

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestVerdict has one small world for each cause, and expects what a person is told first.
func TestVerdict(t *testing.T) {
	t.Parallel()
	const (
		nic = `
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: nic}
spec: {selectors: [{cel: {expression: 'device.driver == "nic.example.com"'}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: nics}
spec:
  driver: nic.example.com
  nodeName: node-0001
  pool: {name: node-0001, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: nic-0, allowMultipleAllocations: true, capacity: {bandwidth: {value: 10G}}}
---
`
		count   = `{requests: [{name: gpu, exactly: {deviceClassName: gpu, count: %d}}]}`
		selects = `{requests: [{name: gpu, exactly: {deviceClassName: gpu, selectors: [{cel: {expression: '%s'}}]}}]}`
		rate    = `{requests: [{name: nic, exactly: {deviceClassName: nic, capacity: {requests: {bandwidth: %s}}}}]}`
		pair    = `{requests: [{name: gpu, exactly: {deviceClassName: gpu}}, {name: nic, exactly: {deviceClassName: nic}}], constraints: [{matchAttribute: gpu.example.com/root}]}`
		held    = `
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: held-%[1]d}
spec: {devices: ` + one + `}
status:
  reservedFor: [{resource: pods, name: holder, uid: u}]
  allocation: {devices: {results: [{request: gpu, driver: gpu.example.com, pool: node-%04[1]d, device: gpu-0}]}}
---
`
		heldNIC = `
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: held-nic}
spec: {devices: {requests: [{name: nic, exactly: {deviceClassName: nic}}]}}
status:
  reservedFor: [{resource: pods, name: holder, uid: u}]
  allocation: {devices: {results: [{request: nic, driver: nic.example.com, pool: node-0001, device: nic-0, shareID: 11111111-1111-1111-1111-111111111111, consumedCapacity: {bandwidth: 8G}}]}}
---
`
		rule = `
apiVersion: resource.k8s.io/v1beta2
kind: DeviceTaintRule
metadata: {name: maintenance}
spec: {deviceSelector: {driver: gpu.example.com}, taint: {key: example.com/broken, effect: NoSchedule}}
---
`
	)
	incomplete := gpus(1, 2)
	incomplete.Slices[0].Spec.Pool.ResourceSliceCount = 2
	tainted := gpus(2, 1)
	for _, node := range tainted.Nodes {
		node.Spec.Taints = []corev1.Taint{{Key: "gpu.example.com", Effect: corev1.TaintEffectNoSchedule}}
	}
	requesting := func(resources string) string {
		return strings.Replace(pod("p", one), "image: i", "image: i, resources: {limits: {"+resources+"}}", 1)
	}
	for name, test := range map[string]struct {
		world   *World
		objects string
		want    string
	}{
		"no class": {
			gpus(1, 1), pod("p", `{requests: [{name: gpu, exactly: {deviceClassName: h100}}]}`),
			`there is no DeviceClass "h100": create it, or correct resourceclaim "p-gpu", request gpu`,
		},
		"the class selects nothing": {
			gpus(2, 2), `
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: a}
spec: {selectors: [{cel: {expression: "device.attributes['gpu.example.com'].model == 'B200'"}}]}
---
` + pod("p", `{requests: [{name: gpu, exactly: {deviceClassName: a}}]}`),
			"no device is of class a: its selector `device.attributes['gpu.example.com'].model == 'B200'` matches none of 4 on the nodes that the Pod may be on; request gpu wants 1",
		},
		"the driver is silent": {
			gpus(2, 2), strings.Split(nic, "---")[0] + "---\n" + pod("p", fmt.Sprintf(rate, "1G")),
			"driver nic.example.com has published no devices: start its plugin; request nic wants 1",
		},
		"an incomplete pool": {
			incomplete, pod("p", one),
			"pool node-0000 of driver gpu.example.com is incomplete (1 of 2 slices of generation 1), so none of its devices can be had until the driver has published all its slices; request gpu wants 1",
		},
		"no devices": {
			&World{Nodes: gpus(1, 1).Nodes, Classes: gpus(1, 1).Classes}, pod("p", one),
			"driver gpu.example.com has published no devices: start its plugin; request gpu wants 1",
		},
		"the request selects nothing": {
			gpus(2, 2), pod("p", fmt.Sprintf(selects, `device.attributes["gpu.example.com"].model == "B200"`)),
			"there is no device of class gpu that matches `device.attributes[\"gpu.example.com\"].model == \"B200\"`, among 4 of the class on 2 nodes; request gpu wants 1",
		},
		"an attribute is missing": {
			gpus(2, 2), pod("p", fmt.Sprintf(selects, `device.attributes["gpu.example.com"].memory > 3`)),
			"the selector `device.attributes[\"gpu.example.com\"].memory > 3` of the request fails for device gpu.example.com/node-0000/gpu-0: it has no attribute gpu.example.com/memory (no such key: memory): guard it with has(), or with .? and orValue()",
		},
		"more than a node has": {
			gpus(2, 2), pod("p", fmt.Sprintf(count, 3)),
			"no node has as many devices: node node-0000 has the most, 2, of 4 devices of class gpu on 2 nodes; request gpu wants 3 on one node",
		},
		"all taken": {
			gpus(2, 1), fmt.Sprintf(held, 0) + fmt.Sprintf(held, 1) + pod("p", one),
			"all 2 devices of class gpu on 2 nodes are allocated (default/holder 2); request gpu wants 1; nearest: node node-0000 lacks 1",
		},
		"too many taken": {
			gpus(2, 2), fmt.Sprintf(held, 0) + fmt.Sprintf(held, 1) + pod("p", fmt.Sprintf(count, 2)),
			"only 2 of 4 devices of class gpu on 2 nodes can be had: 2 allocated (default/holder 2); request gpu wants 2 on one node; nearest: node node-0000 lacks 1",
		},
		"tainted": {
			gpus(1, 2), rule + pod("p", one),
			"all 2 devices of class gpu on 1 node are tainted (example.com/broken:NoSchedule of DeviceTaintRule maintenance 2), which the request does not tolerate; request gpu wants 1; nearest: node node-0000 lacks 1",
		},
		"capacity": {
			gpus(2, 1), nic + heldNIC + pod("p", fmt.Sprintf(rate, "4G")),
			"capacity bandwidth has too little left, 4G wanted and at most 2G to be had, taken by default/holder 1; 1 device of class nic on 1 node, 0 left; request nic wants 1; nearest: node node-0001 lacks 1",
		},
		"capacity of any": {
			gpus(2, 1), nic + heldNIC + pod("p", `{requests: [{name: nic, exactly: {deviceClassName: any, selectors: [{cel: {expression: 'device.driver == "nic.example.com"'}}], capacity: {requests: {bandwidth: 4G}}}}]}`) + "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: any}\nspec: {}\n",
			"capacity bandwidth has too little left, 4G wanted and at most 2G to be had, taken by default/holder 1; 1 device of class any that matches `device.driver == \"nic.example.com\"` on 2 nodes, 0 left; request nic wants 1; nearest: node node-0001 lacks 1",
		},
		"match no attribute": {
			gpus(1, 4), pod("p", `{requests: [{name: gpu, exactly: {deviceClassName: gpu, count: 2}}], constraints: [{matchAttribute: gpu.example.com/rack}]}`),
			"no device of class gpu has attribute gpu.example.com/rack, which matchAttribute of the claim needs; 4 devices of class gpu on 1 node, 4 left; request gpu wants 2 on one node; nearest: node node-0000 lacks 2",
		},
		"match": {
			gpus(1, 8), pod("p", `{requests: [{name: gpu, exactly: {deviceClassName: gpu, count: 5}}], constraints: [{matchAttribute: gpu.example.com/root}]}`),
			"matchAttribute gpu.example.com/root: no node has 5 devices with the same value, the most is 4 on node node-0000; 8 devices of class gpu on 1 node, 8 left; request gpu wants 5 on one node",
		},
		"distinct": {
			gpus(1, 8), pod("p", `{requests: [{name: gpu, exactly: {deviceClassName: gpu, count: 5}}], constraints: [{distinctAttribute: gpu.example.com/root}]}`),
			"distinctAttribute gpu.example.com/root: no node has 5 devices with different values, the most is 2 on node node-0000; 8 devices of class gpu on 1 node, 8 left; request gpu wants 5 on one node",
		},
		"match across": {
			gpus(2, 8), nic + pod("p", pair),
			"no device of class nic has attribute gpu.example.com/root, which matchAttribute of the claim needs; 1 device of class nic on 1 node, 1 left; request nic wants 1; nearest: node node-0001 lacks 1",
		},
		"requests before": {
			gpus(1, 2), pod("p", `{requests: [{name: one, exactly: {deviceClassName: gpu}}, {name: two, exactly: {deviceClassName: gpu, count: 2}}]}`),
			"on node node-0000 the requests before it leave 1 of 2 devices; 2 devices of class gpu on 1 node, 2 left; request two wants 2 on one node",
		},
		"alternatives": {
			gpus(1, 2), pod("p", `{requests: [{name: gpu, firstAvailable: [{name: many, deviceClassName: gpu, count: 4}, {name: more, deviceClassName: gpu, count: 8}]}]}`),
			"no alternative is to be had: no node has as many devices: node node-0000 has the most, 2, of 2 devices of class gpu on 1 node; request gpu/many wants 4 on one node, and request gpu/more wants 8 on one node",
		},
		"several requests": {
			gpus(1, 1), fmt.Sprintf(held, 0) + pod("p", `{requests: [{name: one, exactly: {deviceClassName: gpu}}, {name: two, exactly: {deviceClassName: gpu}}]}`),
			"the only device of class gpu is allocated (default/holder 1); request one wants 1; nearest: node node-0000 lacks 1",
		},
		"a selector of the Pod": {
			gpus(2, 1), fmt.Sprintf(held, 0) + strings.Replace(pod("p", one), "spec:\n", "spec:\n  nodeSelector: {name: node-0000}\n", 1),
			"the only device of class gpu is allocated (default/holder 1); request gpu wants 1; node node-0001 has it all, but the Pod's nodeSelector or node affinity does not match",
		},
		"no node for the Pod": {
			gpus(2, 1), strings.Replace(pod("p", one), "spec:\n", "spec:\n  nodeSelector: {name: node-9}\n", 1),
			"no node may have the Pod, whatever its devices: no node has the label name=node-9, which the Pod's nodeSelector or node affinity asks for; nodes node-0000, node-0001: the Pod's nodeSelector or node affinity does not match",
		},
		"affinity to no node": {
			gpus(2, 1), strings.Replace(pod("p", one), "spec:\n  containers", "spec:\n  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [a, b]}]}]}}}\n  containers", 1),
			"no node may have the Pod, whatever its devices: no node has the label zone In a, b, which the Pod's nodeSelector or node affinity asks for; nodes node-0000, node-0001: the Pod's nodeSelector or node affinity does not match",
		},
		"the nodes with devices do not admit the Pod": {
			tainted, "apiVersion: v1\nkind: Node\nmetadata: {name: plain}\n---\n" + pod("p", one),
			"all 2 devices of class gpu are on nodes that do not admit the Pod: nodes node-0000, node-0001: the Pod does not tolerate the taint gpu.example.com:NoSchedule; request gpu wants 1; nodes node-0000, node-0001 have them free",
		},
		"too little cpu": {
			limited("4", "20"), busy("node-0000", "3") + busy("node-0001", "2") + requesting("cpu: 3"),
			"no node may have the Pod, whatever its devices: nodes node-0000, node-0001: insufficient cpu (3 cpu requested, 2 of 4 left on node node-0001)",
		},
		"more cpu than any node has": {
			limited("4", "20"), requesting("cpu: 5"),
			"no node may have the Pod, whatever its devices: nodes node-0000, node-0001: insufficient cpu (5 cpu requested, more than node node-0000 has (4))",
		},
		"a resource that no node has": {
			limited("4", "20"), requesting("example.com/fpga: 1"),
			"no node provides example.com/fpga, and no DeviceClass has it as its extendedResourceName",
		},
		"too many Pods": {
			limited("4", "1"), busy("node-0000", "1") + busy("node-0001", "1") + pod("p", one),
			"no node may have the Pod, whatever its devices: nodes node-0000, node-0001: insufficient pods (1 of 1 Pods that node node-0000 takes are there)",
		},
		"the host port is taken": {
			gpus(1, 1), strings.Replace(busy("node-0000", "1"), "image: i,", "image: i, ports: [{containerPort: 80, hostPort: 80}],", 1) +
				strings.Replace(pod("p", one), "image: i", "image: i, ports: [{containerPort: 8080, hostPort: 80}]", 1),
			"no node may have the Pod, whatever its devices: node node-0000: another Pod has the host port 80/TCP",
		},
		"devices and cpu are on different nodes": {
			limited("4", "20"), fmt.Sprintf(held, 0) + busy("node-0001", "4") + requesting("cpu: 1"),
			"the only device of class gpu is allocated (default/holder 1); request gpu wants 1; node node-0001 has it all, but insufficient cpu (1 cpu requested, 0 of 4 left on node node-0001)",
		},
		"admin access is not permitted": {
			without("default"), pod("p", `{requests: [{name: gpu, exactly: {deviceClassName: gpu, adminAccess: true}}]}`),
			`request gpu of claim gpu wants admin access, which namespace default does not permit: its label resource.kubernetes.io/admin-access is not "true"`,
		},
		"no claim, and no node": {
			limited("4", "20"), "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i, resources: {requests: {cpu: 9}}}]}\n",
			"no node admits the Pod: nodes node-0000, node-0001: insufficient cpu (9 cpu requested, more than node node-0000 has (4))",
		},
		"allocated elsewhere": {
			gpus(2, 1), sharedClaim + sharing("p", ", nodeSelector: {name: node-0000}") + sharing("other", ", nodeSelector: {name: node-0001}"),
			"claim shared has device gpu.example.com/node-0001/gpu-0 already, by default/other, and the Pod cannot go there: node node-0001: the Pod's nodeSelector or node affinity does not match",
		},
		"admin access": {
			gpus(1, 1), rule + pod("p", `{requests: [{name: gpu, exactly: {deviceClassName: gpu, adminAccess: true}}]}`),
			"the only device of class gpu is tainted (example.com/broken:NoSchedule of DeviceTaintRule maintenance 1), which the request does not tolerate; request gpu wants 1; nearest: node node-0000 lacks 1",
		},
		"fits": {
			gpus(2, 1), pod("p", one),
			"nodes node-0000, node-0001 have what it asks for now",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pods := parse(t, test.world, test.objects)
			scheduler := NewScheduler(test.world)
			for _, other := range pods[1:] {
				require.NotEmpty(t, scheduler.Schedule(t.Context(), other).Node)
			}
			require.Equal(t, test.want, scheduler.Outlook(t.Context(), pods[0]).Verdict())
		})
	}
}

// limited is a world of two nodes with a GPU, some CPUs, and a limit of Pods.
func limited(cpu, pods string) *World {
	world := gpus(2, 1)
	for _, node := range world.Nodes {
		node.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse(cpu), "pods": resource.MustParse(pods)}
	}
	world.IsLive = true
	return world
}

// without is a world with a namespace that does not permit admin access.
func without(namespace string) *World {
	world := gpus(1, 1)
	world.Namespaces = []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: namespace}}}
	return world
}

// busy is a Pod on a node that requests CPUs.
func busy(node, cpu string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: busy-%[1]s}
spec: {nodeName: %[1]s, containers: [{name: c, image: i, resources: {requests: {cpu: %[2]s}}}]}
---
`, node, cpu)
}
