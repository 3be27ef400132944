package story

import (
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	resourceVersion = "resource.k8s.io/v1"
	// accountName is the ServiceAccount of the Pods: no controller has to make one.
	accountName = "pods"
	// domain ends the names of drivers, and qualifies attributes that several drivers have.
	domain = "example.com"
	// maxPods is how many Pods a story has at most.
	maxPods = 12
)

// dice draws random values, and names objects.
type dice struct {
	*rand.Rand
	id       string
	features Features
}

// fleetMaker makes nodes, devices and classes.
type fleetMaker struct {
	dice
	fleet fleet
}

// loadMaker makes Pods and claims for a fleet.
type loadMaker struct {
	fleetMaker
	load load
}

// generator makes a story step by step, as the fleet and the load are at that moment.
type generator struct {
	loadMaker
	story *Story
}

// New draws a story from a seed. The ID is a DNS label of at most 20 characters: it is the story's namespace, and in
// the names of all objects outside it.
func New(id string, seed int64, f Features) *Story {
	g := &generator{story: &Story{ID: id, Seed: seed}}
	g.dice = dice{Rand: rand.New(rand.NewPCG(uint64(seed), 0)), id: id, features: f}
	g.createFleet()
	g.createLoad()
	firstEvent := len(g.story.Steps)
	for steps, tries := g.between(4, 7), 0; len(g.story.Steps) < steps && tries < 20; tries++ {
		g.addEvent()
	}
	last := len(g.story.Steps) - 1
	g.story.restAfterLast()
	answered := -1
	if g.fleet.hasBindingConditions() { // drivers answer once: kube-scheduler looks for their answers every 5 s
		answered = choose(g, firstEvent-1, last)
		step := &g.story.Steps[answered]
		step.Rest, step.Answer = true, choose(g, Ready, Ready, Ready, Failed)
	}
	ending{g}.addEnding(answered)
	return g.story
}

// chance is true in so many of 100 cases.
func (g *dice) chance(percent int) bool { return g.IntN(100) < percent }

// between returns a number from least to most.
func (g *dice) between(least, most int) int { return least + g.IntN(most-least+1) }

// choose returns one of several values.
func choose[T any](g interface{ IntN(n int) int }, from ...T) T { return from[g.IntN(len(from))] }

// addStep adds a step to the story.
func (s *Story) addStep(step Step) { s.Steps = append(s.Steps, step) }

// clusterMeta is the metadata of an object outside the namespace.
func (g *dice) clusterMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: g.id + "-" + name, Labels: map[string]string{Label: g.id}}
}

// namespacedMeta is the metadata of an object in the namespace.
func (g *dice) namespacedMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: g.id, Labels: map[string]string{Label: g.id}}
}

func typeOf(version, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: version, Kind: kind}
}

func (g *fleetMaker) newNamespace() *corev1.Namespace {
	return &corev1.Namespace{TypeMeta: typeOf("v1", "Namespace"), ObjectMeta: metav1.ObjectMeta{Name: g.id, Labels: map[string]string{Label: g.id}}}
}

func (g *loadMaker) newServiceAccount() *corev1.ServiceAccount {
	return &corev1.ServiceAccount{TypeMeta: typeOf("v1", "ServiceAccount"), ObjectMeta: g.namespacedMeta(accountName)}
}

// parseAmount parses a quantity of this package.
func parseAmount(value string) resource.Quantity { return resource.MustParse(value) }
