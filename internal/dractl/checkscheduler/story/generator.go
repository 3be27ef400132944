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

// generator draws a story.
type generator struct {
	*rand.Rand
	features Features
	story    *Story
	fleet    fleet
	load     load
}

// New draws a story from a seed. The ID is a DNS label of at most 20 characters: it is the story's namespace, and in
// the names of all objects outside it.
func New(id string, seed int64, f Features) *Story {
	g := &generator{Rand: rand.New(rand.NewPCG(uint64(seed), 0)), features: f, story: &Story{ID: id, Seed: seed}}
	g.createFleet()
	g.createLoad()
	firstEvent := len(g.story.Steps)
	for steps, tries := g.between(4, 7), 0; len(g.story.Steps) < steps && tries < 20; tries++ {
		g.addEvent()
	}
	g.finish(firstEvent)
	return g.story
}

// finish has the last step rest. Where devices have binding conditions, drivers answer once: kube-scheduler looks for
// their answers every 5 s.
func (g *generator) finish(firstEvent int) {
	steps := g.story.Steps
	last := &steps[len(steps)-1]
	last.Rest = true
	if g.fleet.hasBindingConditions() {
		answered := choose(g, &steps[firstEvent-1], last)
		answered.Rest, answered.Answer = true, choose(g, Ready, Ready, Ready, Failed)
	}
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
	return metav1.ObjectMeta{Name: g.story.ID + "-" + name, Labels: map[string]string{Label: g.story.ID}}
}

// namespacedMeta is the metadata of an object in the namespace.
func (g *generator) namespacedMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: g.story.ID, Labels: map[string]string{Label: g.story.ID}}
}

func typeOf(version, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: version, Kind: kind}
}

func (g *generator) newNamespace() *corev1.Namespace {
	return &corev1.Namespace{TypeMeta: typeOf("v1", "Namespace"), ObjectMeta: metav1.ObjectMeta{Name: g.story.ID, Labels: map[string]string{Label: g.story.ID}}}
}

func (g *generator) newServiceAccount() *corev1.ServiceAccount {
	return &corev1.ServiceAccount{TypeMeta: typeOf("v1", "ServiceAccount"), ObjectMeta: g.namespacedMeta(accountName)}
}

// parseAmount parses a quantity of this package.
func parseAmount(value string) resource.Quantity { return resource.MustParse(value) }
