package devices

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
)

func namedDevices(names ...string) string {
	return "driver: d\ndevices: [{name: " + strings.Join(names, "}, {name: ") + "}]\n"
}

func TestSelectForNode(t *testing.T) {
	t.Parallel()
	onZone := "nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: Exists}]}]}\n"
	templates := []*Template{
		compile(t, "c", namedDevices("a")),
		compile(t, "b", namedDevices("a")),
		compile(t, "high", namedDevices("a")+onZone+"priority: 5"),
		compile(t, "also-high", namedDevices("a")+onZone+"priority: 5"),
		compile(t, "low", namedDevices("a")+"priority: -1"),
		compile(t, "other", "driver: e\npriority: 9\ndevices: [{name: a}]"),
		compile(t, "never", "driver: f\nnodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: none, operator: Exists}]}]}\ndevices: [{name: a}]"),
	}
	for name, test := range map[string]struct {
		node *corev1.Node
		want map[string][]string
	}{
		"priority 0":      {newNode("n", nil), map[string][]string{"d": {"b", "c"}, "e": {"other"}}},
		"priority 5 wins": {newNode("n", map[string]string{"zone": "z"}), map[string][]string{"d": {"also-high", "high"}, "e": {"other"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for rotate := range templates {
				order := append(append([]*Template{}, templates[rotate:]...), templates[:rotate]...)
				got := map[string][]string{}
				for driver, chosen := range SelectForNode(order, test.node).ByDriver {
					for _, template := range chosen {
						got[driver] = append(got[driver], template.Name)
					}
				}
				require.Equal(t, test.want, got)
			}
		})
	}
}

func TestPools(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		templates []*Template
		want      map[string][]string
	}{
		"one":                       {[]*Template{compile(t, "a", namedDevices("x"))}, map[string][]string{"n": {"x"}}},
		"two form one pool":         {[]*Template{compile(t, "a", namedDevices("x", "w")), compile(t, "b", namedDevices("z"))}, map[string][]string{"n": {"x", "w", "z"}}},
		"two pools":                 {[]*Template{compile(t, "a", namedDevices("x")), compile(t, "b", namedDevices("x")+"poolName: other-{{ .Node.metadata.name }}")}, map[string][]string{"n": {"x"}, "other-n": {"x"}}},
		"first and third":           {[]*Template{compile(t, "a", namedDevices("x")), compile(t, "b", namedDevices("x")+"poolName: other-{{ .Node.metadata.name }}"), compile(t, "c", namedDevices("w"))}, map[string][]string{"n": {"x", "w"}, "other-n": {"x"}}},
		"name by template":          {[]*Template{compile(t, "a", namedDevices("x")+`poolName: "{{ .Node.metadata.name }}/{{ .Node.metadata.uid }}"`)}, map[string][]string{"n/uid-of-n": {"x"}}},
		"default beside a template": {[]*Template{compile(t, "a", oneGPU(`a: "{{ .Index }}"`))}, map[string][]string{"n": {"gpu"}}},
		"literal with templates":    {[]*Template{compile(t, "a", oneGPU(`a: "{{ .Index }}"`)+"sharedWith: {allNodes: true}\npoolName: fixed")}, map[string][]string{}},
		"none":                      {nil, map[string][]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := map[string][]string{}
			for _, pool := range render(t, newNode("n", nil), test.templates...) {
				got[pool.Name] = deviceNames(pool.Devices)
			}
			require.Equal(t, test.want, got)
		})
	}
}

func TestDuplicateDevicesNameBothTemplates(t *testing.T) {
	t.Parallel()
	templates := []*Template{compile(t, "first", namedDevices("x")), compile(t, "second", "driver: d\ndevices: [{name: w}, {name: x}]")}
	_, err := Pools(templates, lifecycle.NewObject(newNode("n", nil)))
	require.EqualError(t, err, "template first and template second both have the device x in pool n of driver d: rename one, or set poolName or priority; template second is left out on this node")

	counted := compile(t, "counted", "driver: d\ndevices: [{name: x, count: 3}]")
	_, err = Pools([]*Template{counted, compile(t, "plain", namedDevices("x-2"))}, lifecycle.NewObject(newNode("n", nil)))
	require.ErrorContains(t, err, "template counted and template plain both have the device x-2")
}

// TestSlices: the API server takes 128 devices in a slice, 64 if any of them
// has taints (ResourceSliceMaxDevices).
func TestSlices(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		devices, tainted int
		want             []int
	}{
		"one":            {1, 0, []int{1}},
		"128":            {128, 0, []int{128}},
		"129":            {129, 0, []int{128, 1}},
		"300":            {300, 0, []int{128, 128, 44}},
		"64 with taint":  {63, 1, []int{64}},
		"65 with taint":  {64, 1, []int{64, 1}},
		"300 with taint": {299, 1, []int{64, 64, 64, 64, 44}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := fmt.Sprintf("driver: d\ndevices:\n- {name: a, count: %d}\n", test.devices)
			if test.tainted > 0 {
				spec += "- {name: b, taints: [{key: a, effect: NoSchedule}]}\n"
			}
			pool := render(t, newNode("n", nil), compile(t, "t", spec))[0]
			var got []int
			var all []resourcev1.Device
			for _, slice := range divide(t, &pool, CountersApart) {
				got = append(got, len(slice.Devices))
				all = append(all, slice.Devices...)
			}
			require.Equal(t, test.want, got)
			require.Equal(t, pool.Devices, all)
		})
	}
}

// TestSlicesDoNotOverlap: appending to one slice's devices must not reach into
// the next.
func TestSlicesDoNotOverlap(t *testing.T) {
	t.Parallel()
	pool := render(t, newNode("n", nil), compile(t, "t", "driver: d\ndevices: [{name: a, count: 200}]"))[0]
	chunks := divide(t, &pool, CountersApart)
	_ = append(chunks[0].Devices, resourcev1.Device{Name: "intruder"})
	require.Equal(t, "a-128", chunks[1].Devices[0].Name)
}

func TestTemplatesOfOnePoolAreRemembered(t *testing.T) {
	t.Parallel()
	a, b := compile(t, "a", namedDevices("x")), compile(t, "b", namedDevices("w"))
	pool := render(t, newNode("n", nil), a, b)[0]
	require.Equal(t, []*Template{a, b}, pool.Templates)
	require.Equal(t, "d", pool.Driver)
}

func divide(t *testing.T, pool *Pool, layout Layout) []Slice {
	t.Helper()
	made, err := pool.Slices(layout)
	require.NoError(t, err)
	return made
}

// realisticNode has what a kwok node of a cloud has.
func realisticNode() *corev1.Node {
	node := newNode("ip-10-0-0-1.eu-west-1.compute.internal", map[string]string{
		"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "kubernetes.io/hostname": "ip-10-0-0-1", "type": "kwok",
		"node.kubernetes.io/instance-type": "p5.48xlarge", "topology.kubernetes.io/region": "eu-west-1",
		"topology.kubernetes.io/zone": "eu-west-1a", "karpenter.sh/nodepool": "default", "karpenter.sh/capacity-type": "spot",
	})
	node.Annotations = map[string]string{"kwok.x-k8s.io/node": "fake", "node.alpha.kubernetes.io/ttl": "0"}
	list := corev1.ResourceList{
		"cpu": resource.MustParse("192"), "memory": resource.MustParse("2Ti"), "pods": resource.MustParse("110"),
		"ephemeral-storage": resource.MustParse("500Gi"), "hugepages-2Mi": resource.MustParse("0"),
	}
	node.Status = corev1.NodeStatus{Capacity: list, Allocatable: list}
	for _, condition := range []corev1.NodeConditionType{"Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"} {
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
			Type: condition, Status: "True", Reason: "KubeletReady", Message: "kubelet is posting ready status",
		})
	}
	node.Status.Addresses = []corev1.NodeAddress{{Type: "InternalIP", Address: "10.0.0.1"}, {Type: "Hostname", Address: node.Name}}
	return node
}

const realistic = `
driver: gpu.nvidia.com
devices:
- name: gpu
  count: 8
  attributes:
    type: gpu
    productName: NVIDIA H100 80GB HBM3
    brand: Nvidia
    architecture: Hopper
    cudaComputeCapability: {version: 9.0.0}
    driverVersion: {version: 570.86.15}
    index: {int: "{{ .Index }}"}
    uuid: "GPU-{{ uuid .Node.metadata.uid .Index }}"
    pcieRoot: "pci0000:{{ printf \"%02d\" .Index }}"
  capacity: {memory: 80Gi}
`

// BenchmarkPools renders 8 devices of 9 attributes, 3 of them templates.
func BenchmarkPools(b *testing.B) {
	benchmarkPools(b, realistic)
}

// BenchmarkPoolsWithoutTemplates renders as many devices, alike on all nodes.
func BenchmarkPoolsWithoutTemplates(b *testing.B) {
	benchmarkPools(b, "driver: d\ndevices: [{name: gpu, count: 8, attributes: {a: x, b: x, c: x, d: x, e: x, f: x, g: x, h: x, i: x}, capacity: {memory: 80Gi}}]")
}

func benchmarkPools(b *testing.B, spec string) {
	templates := []*Template{compile(b, "t", spec)}
	node := realisticNode()
	b.ReportAllocs()
	for b.Loop() {
		pools, err := Pools(templates, lifecycle.NewObject(node))
		if err != nil || len(pools[0].Devices) != 8 {
			b.Fatal(pools, err)
		}
	}
}
