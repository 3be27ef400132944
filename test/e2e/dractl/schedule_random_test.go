package dractl

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// randomScenes is how many cases have random devices.
const randomScenes = 170

// randomCases makes cases that have something of everything: several pools and
// slices, attributes that not all devices have, counters, shares, taints on devices
// and nodes; and Pods whose claims ask for it.
func randomCases(seed uint64) []*scene {
	cases := make([]*scene, randomScenes)
	for i := range cases {
		cases[i] = newDice(seed, uint64(i)).scene(fmt.Sprintf("random-%03d", i))
	}
	return cases
}

// dice draws what cases are made of.
type dice struct{ *rand.Rand }

func newDice(seed, index uint64) *dice { return &dice{rand.New(rand.NewPCG(seed, index))} }

// in is true once in n times.
func (d *dice) in(n int) bool { return d.IntN(n) == 0 }

func pick[T any](d *dice, from ...T) T { return from[d.IntN(len(from))] }

func (d *dice) scene(name string) *scene {
	s := &scene{name: name}
	driver := name + ".example.com"
	s.classes = []*resourcev1.DeviceClass{
		class(name+"-any", `device.driver == "`+driver+`"`),
		class(name+"-kind", `device.driver == "`+driver+`" && device.attributes["`+driver+`"].kind == "a"`),
	}
	flavor := pick(d, plain, plain, counted, shared, tainted)
	for n := range 1 + d.IntN(2)*d.IntN(3) {
		s.nodes = append(s.nodes, d.node(name, n))
		for p := range 1 + d.IntN(5)/4 {
			s.slices = append(s.slices, d.pool(driver, s.nodes[n].Name, p, flavor)...)
		}
	}
	var names []string
	for i := range 3 + d.IntN(3) {
		step := step{}
		var claims []string
		for c := range 1 + d.IntN(5)/4 {
			if len(names) > 0 && d.in(6) && c == 0 {
				claims = append(claims, pick(d, names...)) // one that others have too
				continue
			}
			claim := newClaim(name, fmt.Sprintf("%s-%d-%d", name, i, c), d.claim(driver, name, flavor))
			step.claims, claims, names = append(step.claims, claim), append(claims, claim.Name), append(names, claim.Name)
		}
		step.pod = newScenePod(name, i, claims...)
		if d.in(4) {
			step.pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(pick(d, "1", "2500m", "9"))}
		}
		if d.in(2) {
			step.pod.Spec.Tolerations = []corev1.Toleration{{Key: "reserved", Operator: corev1.TolerationOpExists}}
		}
		s.steps = append(s.steps, step)
	}
	for i := range s.steps {
		d.addNeighbourRules(s.steps[i].pod)
	}
	return s
}

// addNeighbourRules has a Pod be of one of two apps, and at times be with or without Pods of an app.
func (d *dice) addNeighbourRules(pod *corev1.Pod) {
	pod.Labels["app"] = pick(d, "a", "b")
	if !d.in(3) {
		return
	}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{caseLabel: pod.Labels[caseLabel], "app": pick(d, "a", "b")}}
	key := pick(d, corev1.LabelHostname, corev1.LabelTopologyZone)
	terms := []corev1.PodAffinityTerm{{TopologyKey: key, LabelSelector: selector}}
	switch d.IntN(4) {
	case 0:
		pod.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
	case 1:
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
	default:
		constraint := corev1.TopologySpreadConstraint{TopologyKey: key, MaxSkew: 1, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector}
		if d.in(3) {
			constraint.MinDomains = new(int32(2))
		}
		if d.in(3) {
			constraint.NodeTaintsPolicy = new(corev1.NodeInclusionPolicyHonor)
		}
		pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{constraint}
	}
}

// flavor is what devices of a case can do besides.
type flavor int

const (
	plain flavor = iota
	counted
	shared
	tainted
)

func class(name, expression string) *resourcev1.DeviceClass {
	return &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{selecting(expression)}},
	}
}

func selecting(expression string) resourcev1.DeviceSelector {
	return resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}
}

func newClaim(of, name string, spec resourcev1.ResourceClaimSpec) *resourcev1.ResourceClaim {
	return &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{caseLabel: of}}, Spec: spec,
	}
}

// newNode makes a node that takes Pods.
func newNode(of, name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{caseLabel: of, corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{
				corev1.ResourcePods: resource.MustParse("110"), corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("512Gi"),
			},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

// node has few CPUs at times, or takes no more Pods.
func (d *dice) node(of string, index int) *corev1.Node {
	node := newNode(of, fmt.Sprintf("%s-node-%d", of, index))
	if index < 3 { // others are in no zone
		node.Labels[corev1.LabelTopologyZone] = fmt.Sprintf("%s-zone-%d", of, index%2)
	}
	if d.in(4) {
		node.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("4")
	}
	node.Spec.Unschedulable = d.in(10)
	if d.in(8) {
		node.Spec.Taints = []corev1.Taint{{Key: "reserved", Effect: pick(d, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule)}}
	}
	return node
}

// pool makes the slices of a pool on a node. One in ten is incomplete, but none with
// counters: in Kubernetes 1.36 it would keep Pods away from all other nodes too that
// ask for all devices. None is in Kubernetes 1.34, whose scheduler also allocates
// devices of such a pool (allocateOne looks only whether the pool is invalid).
func (d *dice) pool(driver, node string, index int, f flavor) []*resourcev1.ResourceSlice {
	name := fmt.Sprintf("%s-%d", node, index)
	devices := make([]resourcev1.Device, 2+d.IntN(5))
	for i := range devices {
		devices[i] = d.device(fmt.Sprintf("dev-%d", i), f)
	}
	parts := [][]resourcev1.Device{devices}
	if d.in(3) {
		parts = [][]resourcev1.Device{devices[:1], devices[1:]}
	}
	var all []*resourcev1.ResourceSlice
	for _, part := range parts {
		all = append(all, &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{Devices: part}})
	}
	if f == counted {
		all = append(all, &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{SharedCounters: []resourcev1.CounterSet{{
			Name: "all", Counters: map[string]resourcev1.Counter{"memory": {Value: resource.MustParse("40Gi")}, "cores": {Value: resource.MustParse("8")}},
		}}}})
	}
	count := int64(len(all))
	if f != counted && d.in(10) && harness.KubernetesMinor() >= 35 {
		count++
	}
	for i, slice := range all {
		slice.ObjectMeta = metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", name, i)}
		slice.Spec.Driver, slice.Spec.NodeName = driver, &node
		slice.Spec.Pool = resourcev1.ResourcePool{Name: name, Generation: 1, ResourceSliceCount: count}
	}
	return all
}

func (d *dice) device(name string, f flavor) resourcev1.Device {
	device := resourcev1.Device{
		Name: name,
		Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			"kind": {StringValue: new(pick(d, "a", "a", "b"))},
			"root": {StringValue: new(pick(d, "r0", "r1"))},
			"numa": {IntValue: new(int64(d.IntN(3)))},
			"fast": {BoolValue: new(d.in(2))},
		},
		Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse(pick(d, "10Gi", "20Gi", "40Gi"))}},
	}
	if d.in(4) {
		delete(device.Attributes, "root")
	}
	switch f {
	case counted:
		device.ConsumesCounters = []resourcev1.DeviceCounterConsumption{{CounterSet: "all", Counters: map[string]resourcev1.Counter{
			"memory": {Value: device.Capacity["memory"].Value}, "cores": {Value: resource.MustParse(pick(d, "1", "2", "4"))},
		}}}
	case shared:
		device.AllowMultipleAllocations = new(true)
		device.Capacity["bandwidth"] = resourcev1.DeviceCapacity{Value: resource.MustParse("10"), RequestPolicy: pick(d, nil, &resourcev1.CapacityRequestPolicy{
			Default: new(resource.MustParse("2")), ValidRange: &resourcev1.CapacityRequestPolicyRange{Min: new(resource.MustParse("1")), Step: new(resource.MustParse("1"))},
		})}
	case tainted:
		if d.in(2) {
			device.Taints = []resourcev1.DeviceTaint{{Key: pick(d, "x", "y"), Value: "1", Effect: pick(d, resourcev1.DeviceTaintEffectNoSchedule, resourcev1.DeviceTaintEffectNoExecute)}}
		}
	}
	return device
}
