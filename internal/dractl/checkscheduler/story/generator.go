package story

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// generator draws a story.
type generator struct {
	*rand.Rand
	id       string
	features Features

	story *Story
	nodes []string
}

// New draws a story from a seed. The ID is a DNS label of at most 20 characters: it is the story's namespace, and in
// the names of all objects outside it.
func New(id string, seed int64, f Features) *Story {
	g := &generator{Rand: rand.New(rand.NewPCG(uint64(seed), 0)), id: id, features: f, story: &Story{ID: id, Seed: seed}}
	g.createFleet()
	g.createLoad()
	return g.story
}

// chance is true in so many of 100 cases.
func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

// between returns a number from least to most.
func (g *generator) between(least, most int) int { return least + g.IntN(most-least+1) }

func choose[T any](g *generator, from ...T) T { return from[g.IntN(len(from))] }

// addStep adds a step to the story.
func (g *generator) addStep(step Step) { g.story.Steps = append(g.story.Steps, step) }

// clusterMeta is the metadata of an object outside the namespace.
func (g *generator) clusterMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: g.id + "-" + name, Labels: map[string]string{Label: g.id}}
}

// namespacedMeta is the metadata of an object in the namespace.
func (g *generator) namespacedMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: g.id, Labels: map[string]string{Label: g.id}}
}

func typeOf(version, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: version, Kind: kind}
}

const resourceVersion = "resource.k8s.io/v1"

func (g *generator) createFleet() {
	fleet := Step{Say: "The fleet comes up."}
	fleet.Create = append(fleet.Create, g.newNamespace(), g.newServiceAccount())
	driver := g.id + ".gpu.example.com"
	fleet.Create = append(fleet.Create, &resourcev1.DeviceClass{
		TypeMeta: typeOf(resourceVersion, "DeviceClass"), ObjectMeta: g.clusterMeta("gpu"),
		Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", driver)}}}},
	})
	for i := range g.between(2, 5) {
		node := g.newNode(fmt.Sprintf("node-%d", i))
		g.nodes = append(g.nodes, node.Name)
		slice := &resourcev1.ResourceSlice{TypeMeta: typeOf(resourceVersion, "ResourceSlice"), ObjectMeta: g.clusterMeta(fmt.Sprintf("gpu-node-%d", i))}
		slice.Spec = resourcev1.ResourceSliceSpec{Driver: driver, NodeName: &node.Name, Pool: resourcev1.ResourcePool{Name: node.Name, Generation: 1, ResourceSliceCount: 1}}
		for d := range g.between(1, 4) {
			slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: fmt.Sprintf("gpu-%d", d)})
		}
		fleet.Create = append(fleet.Create, node, slice)
	}
	g.addStep(fleet)
}

func (g *generator) newNamespace() *corev1.Namespace {
	return &corev1.Namespace{TypeMeta: typeOf("v1", "Namespace"), ObjectMeta: metav1.ObjectMeta{Name: g.id, Labels: map[string]string{Label: g.id}}}
}

// newServiceAccount makes the account of the Pods: no controller has to make one.
func (g *generator) newServiceAccount() *corev1.ServiceAccount {
	return &corev1.ServiceAccount{TypeMeta: typeOf("v1", "ServiceAccount"), ObjectMeta: g.namespacedMeta(accountName)}
}

const accountName = "pods"

func (g *generator) newNode(name string) *corev1.Node {
	node := &corev1.Node{TypeMeta: typeOf("v1", "Node"), ObjectMeta: g.clusterMeta(name)}
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: amount("110"), corev1.ResourceCPU: amount("8"), corev1.ResourceMemory: amount("32Gi")}
	node.Status.Capacity = node.Status.Allocatable.DeepCopy()
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "StoryNode", LastHeartbeatTime: metav1.Time{}}}
	return node
}

func (g *generator) createLoad() {
	for i := range g.between(2, 6) {
		claim := &resourcev1.ResourceClaim{TypeMeta: typeOf(resourceVersion, "ResourceClaim"), ObjectMeta: g.namespacedMeta(fmt.Sprintf("claim-%d", i))}
		claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{
			DeviceClassName: g.id + "-gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: int64(g.between(1, 2)),
		}}}
		pod := g.newPod(fmt.Sprintf("pod-%d", i))
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "claim", ResourceClaimName: &claim.Name}}
		pod.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "claim"}}
		g.addStep(Step{Say: "Pod " + pod.Name + " comes.", Create: Objects{claim, pod}, Rest: g.chance(50)})
	}
	g.story.Steps[len(g.story.Steps)-1].Rest = true
}

func (g *generator) newPod(name string) *corev1.Pod {
	pod := &corev1.Pod{TypeMeta: typeOf("v1", "Pod"), ObjectMeta: g.namespacedMeta(name)}
	pod.Spec = corev1.PodSpec{
		ServiceAccountName: accountName, AutomountServiceAccountToken: new(false), TerminationGracePeriodSeconds: new(int64(0)),
		NodeSelector: map[string]string{Label: g.id},
		Containers:   []corev1.Container{{Name: "main", Image: "registry.k8s.io/pause:3.10"}},
	}
	return pod
}

// amount is a quantity.
func amount(value string) resource.Quantity { return resource.MustParse(value) }
