package simulator

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// zoned has three nodes with two devices each: two in zone a, and one in zone b.
func zoned() *World {
	world := gpus(3, 2)
	for i, zone := range []string{"a", "a", "b"} {
		world.Nodes[i].Labels = map[string]string{"zone": zone, "host": world.Nodes[i].Name}
	}
	world.Namespaces = []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{"team": "x"}}}}
	return world
}

// labeled is a Pod with a device, a label and other fields.
func labeled(name, app, fields string) string {
	return `
apiVersion: v1
kind: Pod
metadata: {name: ` + name + `, labels: {app: ` + app + `}}
spec: {containers: [{name: c, image: i}], resourceClaims: [{name: gpu, resourceClaimTemplateName: gpus}]` + fields + `}
---
`
}

// gpuTemplate is that of the Pods.
const gpuTemplate = `
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpus}
spec: {spec: {devices: ` + one + `}}
---
`

// terms is an affinity, or an anti-affinity, with one term.
func terms(kind, term string) string {
	return `, affinity: {` + kind + `: {requiredDuringSchedulingIgnoredDuringExecution: [{` + term + `}]}}`
}

// TestNeighbours places Pods by the rules about other Pods, as the scheduler's filters do.
func TestNeighbours(t *testing.T) {
	t.Parallel()
	const web = "labelSelector: {matchLabels: {app: web}}"
	apart, beside := terms("podAntiAffinity", "topologyKey: zone, "+web), terms("podAffinity", "topologyKey: zone, "+web)
	spread := func(fields string) string {
		return `, topologySpreadConstraints: [{topologyKey: zone, maxSkew: 1, whenUnsatisfiable: DoNotSchedule, ` + web + fields + `}]`
	}
	onA := `, nodeSelector: {zone: a}`
	for name, test := range map[string]struct{ objects, want string }{
		"anti-affinity": {
			labeled("p", "web", apart) + labeled("q", "web", apart) + labeled("r", "web", apart),
			"p: node-0000 gpu=gpu-0\nq: node-0002 gpu=gpu-0\n" +
				"r:; no node may have the Pod, whatever its devices: nodes node-0000, node-0001, node-0002: didn't match pod anti-affinity rules: the Pod may not be beside Pods with app=web in the same zone",
		},
		"anti-affinity of a Pod that is there": {
			labeled("p", "db", apart) + labeled("q", "web", onA) + labeled("r", "other", onA),
			"p: node-0000 gpu=gpu-0\n" +
				"q:; no node may have the Pod, whatever its devices: nodes node-0000, node-0001: didn't satisfy existing pods anti-affinity rules: a Pod there may not be beside Pods with app=web in the same zone; node node-0002: the Pod's nodeSelector or node affinity does not match\n" +
				"r: node-0001 gpu=gpu-0",
		},
		"affinity": {
			labeled("p", "db", beside) + labeled("q", "web", onA) + labeled("r", "db", beside),
			"p:; no node may have the Pod, whatever its devices: nodes node-0000, node-0001, node-0002: didn't match pod affinity rules: the Pod must be beside Pods with app=web in the same zone\n" +
				"q: node-0000 gpu=gpu-0\nr: node-0001 gpu=gpu-0",
		},
		"affinity to itself": {
			labeled("p", "web", beside) + labeled("q", "web", beside) + labeled("r", "web", beside) + labeled("s", "web", beside) + labeled("u", "web", beside),
			"p: node-0000 gpu=gpu-0\nq: node-0001 gpu=gpu-0\nr: node-0000 gpu=gpu-1\ns: node-0001 gpu=gpu-1\n" +
				"u:; all 4 devices of class gpu on 2 nodes are allocated (default/p 1, default/q 1, default/r 1, and 1 more); request gpu wants 1; node node-0002 has it all, but didn't match pod affinity rules: the Pod must be beside Pods with app=web in the same zone; nodes node-0000, node-0001: claim u-gpu, request gpu wants 1: devices 2, class gpu 2, free 0; node node-0002: didn't match pod affinity rules: the Pod must be beside Pods with app=web in the same zone",
		},
		"no such label": {
			labeled("p", "web", terms("podAffinity", "topologyKey: rack, "+web)),
			"p:; no node may have the Pod, whatever its devices: nodes node-0000, node-0001, node-0002: didn't match pod affinity rules: the Pod must be beside Pods with app=web in the same rack",
		},
		"namespaces by label": {
			labeled("p", "web", "") + labeled("q", "db", terms("podAntiAffinity", "topologyKey: zone, namespaceSelector: {matchLabels: {team: x}}, "+web)) +
				labeled("r", "db", terms("podAntiAffinity", "topologyKey: zone, namespaceSelector: {matchLabels: {team: z}}, "+web)),
			"p: node-0000 gpu=gpu-0\nq: node-0002 gpu=gpu-0\nr: node-0001 gpu=gpu-0",
		},
		"label keys": {
			labeled("p", "web", "") + labeled("q", "web", terms("podAntiAffinity", "topologyKey: zone, labelSelector: {}, matchLabelKeys: [app]")) +
				labeled("r", "db", terms("podAntiAffinity", "topologyKey: zone, labelSelector: {}, mismatchLabelKeys: [none]")),
			"p: node-0000 gpu=gpu-0\nq: node-0002 gpu=gpu-0\n" +
				"r:; no node may have the Pod, whatever its devices: nodes node-0000, node-0001, node-0002: didn't match pod anti-affinity rules: the Pod may not be beside any Pods in the same zone",
		},
		"spread": {
			labeled("p", "web", spread("")) + labeled("q", "web", spread("")) + labeled("r", "web", spread("")+onA) + labeled("s", "web", spread("")+onA),
			"p: node-0000 gpu=gpu-0\nq: node-0002 gpu=gpu-0\nr: node-0001 gpu=gpu-0\ns: node-0000 gpu=gpu-1",
		},
		"spread over all zones": {
			labeled("p", "web", "") + labeled("q", "web", spread(", nodeAffinityPolicy: Ignore")+onA),
			"p: node-0000 gpu=gpu-0\n" +
				"q:; no node may have the Pod, whatever its devices: nodes node-0000, node-0001: didn't match pod topology spread constraints: with the Pod, its zone would have more Pods with app=web than maxSkew 1 permits; node node-0002: the Pod's nodeSelector or node affinity does not match",
		},
		"spread over more zones than there are": {
			labeled("p", "web", spread(", minDomains: 3")) + labeled("q", "web", spread(", minDomains: 3")) + labeled("r", "web", spread(", minDomains: 3")),
			"p: node-0000 gpu=gpu-0\nq: node-0002 gpu=gpu-0\n" +
				"r:; no node may have the Pod, whatever its devices: nodes node-0000, node-0001, node-0002: didn't match pod topology spread constraints: with the Pod, its zone would have more Pods with app=web than maxSkew 1 permits",
		},
		"spread if possible": {
			labeled("p", "web", onA) + labeled("q", "web", `, topologySpreadConstraints: [{topologyKey: rack, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway, `+web+`}]`),
			"p: node-0000 gpu=gpu-0\nq: node-0001 gpu=gpu-0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			world := zoned()
			require.Equal(t, test.want, outcome(t, world, parse(t, world, gpuTemplate+test.objects)))
		})
	}
}

// TestEndingNeighbours do not count for a spread, and do for anti-affinity.
func TestEndingNeighbours(t *testing.T) {
	t.Parallel()
	for fields, want := range map[string]string{
		`topologySpreadConstraints: [{topologyKey: zone, maxSkew: 1, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}]`: "node-0000",
		terms("podAntiAffinity", "topologyKey: zone, labelSelector: {matchLabels: {app: web}}")[2:]:                                                "node-0002",
	} {
		world := zoned()
		pods := parse(t, world, labeled("p", "web", "")+gpuTemplate+labeled("q", "web", ", "+fields))
		now := metav1.Now()
		for range 2 {
			ending := pods[0].DeepCopy()
			ending.Spec.NodeName, ending.DeletionTimestamp, ending.Spec.ResourceClaims = "node-0001", &now, nil
			world.Pods = append(world.Pods, ending)
		}
		require.Equal(t, want, NewScheduler(world).Schedule(t.Context(), pods[1]).Node, fields)
	}
}

// TestUnknownNeighbours: without the Pods no rule about them is judged.
func TestUnknownNeighbours(t *testing.T) {
	t.Parallel()
	world := zoned()
	pods := parse(t, world, gpuTemplate+labeled("p", "web", terms("podAffinity", "topologyKey: zone, labelSelector: {matchLabels: {app: db}}")))
	require.Empty(t, NewScheduler(world).Schedule(t.Context(), pods[0]).Node)
	world.LacksPods = true
	require.NotEmpty(t, NewScheduler(world).Schedule(t.Context(), pods[0]).Node)
}

// TestEvictionOfNeighbours: a Pod of lower priority may go for the sake of anti-affinity.
func TestEvictionOfNeighbours(t *testing.T) {
	t.Parallel()
	world := zoned()
	world.Nodes = world.Nodes[:1]
	const apart = "topologyKey: zone, labelSelector: {matchLabels: {app: web}}"
	pods := parse(t, world, gpuTemplate+labeled("p", "web", "")+labeled("q", "db", ", priority: 5"+terms("podAntiAffinity", apart))+labeled("r", "web", ", priority: 5"))
	there := pods[0].DeepCopy()
	there.UID, there.Spec.NodeName, there.Spec.ResourceClaims = "p", "node-0000", nil
	world.Pods = []*corev1.Pod{there}
	scheduler := NewScheduler(world)
	require.Empty(t, scheduler.Schedule(t.Context(), pods[1]).Node)
	require.Equal(t, &Eviction{"node-0000", world.Pods}, scheduler.FindEviction(t.Context(), pods[1]))

	there.Spec.Affinity = pods[1].Spec.Affinity.DeepCopy() // the other way round
	scheduler = NewScheduler(world)
	require.Empty(t, scheduler.Schedule(t.Context(), pods[2]).Node)
	require.Equal(t, &Eviction{"node-0000", world.Pods}, scheduler.FindEviction(t.Context(), pods[2]))
}

// TestEvictionOfEqualPods: one search does for Pods of one kind and priority.
func TestEvictionOfEqualPods(t *testing.T) {
	t.Parallel()
	world := zoned()
	world.Nodes = world.Nodes[:1]
	repelled := ", priority: 5" + terms("podAntiAffinity", "topologyKey: zone, labelSelector: {matchLabels: {app: web}}")
	pods := parse(t, world, gpuTemplate+labeled("p", "web", "")+labeled("q-0", "db", repelled)+labeled("q-1", "db", repelled))
	there := pods[0].DeepCopy()
	there.UID, there.Spec.NodeName, there.Spec.ResourceClaims = "p", "node-0000", nil
	world.Pods = []*corev1.Pod{there}
	scheduler := NewScheduler(world)
	found := scheduler.FindEviction(t.Context(), pods[1])
	require.Equal(t, &Eviction{"node-0000", world.Pods}, found)
	scheduler.nodes[0].residents = nil // another search finds nobody
	require.Same(t, found, scheduler.FindEviction(t.Context(), pods[2]))
	pods[2].Spec.Priority = new(int32(6))
	require.Nil(t, scheduler.FindEviction(t.Context(), pods[2]))
}
