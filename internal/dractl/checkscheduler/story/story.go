package story

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Label is on every object of a story. Its value is the story's ID.
const Label = "dra.kwok.x-k8s.io/story"

// Object is an object of the API, with its type set.
type Object interface {
	metav1.Object
	runtime.Object
}

// Story is a series of steps on a cluster that has nothing of it before.
type Story struct {
	// ID is in all names, and is the namespace.
	ID string `json:"id"`
	// Seed is what the story was drawn from.
	Seed int64 `json:"seed"`
	// Steps follow each other at once, except where one rests.
	Steps []Step `json:"steps"`
}

// Step is what is done before the scheduler may come to rest. The order of the fields is the order in time.
type Step struct {
	// Say tells what happens, for people.
	Say string `json:"say"`
	// Create are new objects.
	Create Objects `json:"create,omitempty"`
	// Replace are objects with a new spec.
	Replace Objects `json:"replace,omitempty"`
	// Patch are merge patches.
	Patch []Patch `json:"patch,omitempty"`
	// Delete are objects to delete.
	Delete []Deletion `json:"delete,omitempty"`
	// Drain are nodes that become unschedulable, and lose their Pods.
	Drain []string `json:"drain,omitempty"`
	// Answer is what drivers say of devices for whose binding conditions Pods wait, once the scheduler has looked at
	// all Pods. Optional.
	Answer Answer `json:"answer,omitempty"`
	// Rest waits until nothing moves any more.
	Rest bool `json:"rest,omitempty"`
}

// Ref names an object of the story.
type Ref struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
}

// Patch is a merge patch of an object.
type Patch struct {
	Ref `json:",inline"`
	// Subresource is that of the object which is patched. Optional.
	Subresource string `json:"subresource,omitempty"`
	// Merge is the patch.
	Merge string `json:"merge"`
}

// graceSeconds is longer than any story.
const graceSeconds = 300

// Deletion deletes an object. It is no error if it is gone.
type Deletion struct {
	Ref `json:",inline"`
	// IsGraceful leaves a Pod that is bound terminating, as if its containers did not stop.
	IsGraceful bool `json:"graceful,omitempty"`
}

// Answer is what drivers say of devices with binding conditions.
type Answer string

const (
	// Ready sets the binding conditions.
	Ready Answer = "ready"
	// Failed sets the binding failure conditions.
	Failed Answer = "failed"
)

// UseScheduler has another scheduler than the default one schedule the Pods.
func (s *Story) UseScheduler(name string) {
	for i := range s.Steps {
		for _, object := range s.Steps[i].Create {
			if pod, isPod := object.(*corev1.Pod); isPod {
				pod.Spec.SchedulerName = name
			}
		}
	}
}

// deepCopy copies a story.
func (s *Story) deepCopy() *Story {
	c := *s
	c.Steps = slices.Clone(s.Steps)
	for i := range c.Steps {
		step := &c.Steps[i]
		step.Create, step.Replace = step.Create.deepCopy(), step.Replace.deepCopy()
		step.Patch, step.Delete, step.Drain = slices.Clone(step.Patch), slices.Clone(step.Delete), slices.Clone(step.Drain)
	}
	return &c
}
