package drajudge

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/dynamic-resource-allocation/cel"
)

// compiledExpressions is how many compiled expressions an Observer keeps.
const compiledExpressions = 1000

// Options say how strictly an Observer judges.
type Options struct {
	// DecisionLag is how much older than its write a scheduler's decision may be. An allocation that is right
	// by the slices, classes, taint rules, nodes and namespaces of any moment within that time is no
	// violation. It needs the times of events. With 0 only the moment of the write counts.
	DecisionLag time.Duration
}

// Object names an object that took part in a violation.
type Object struct {
	Kind      string    `json:"kind"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid,omitempty"`
}

// Violation is a statement that did not hold.
type Violation struct {
	Statement Statement `json:"statement"`
	// ResourceVersion is that of the write that broke the statement, or of the last write at rest.
	ResourceVersion string   `json:"resourceVersion"`
	Objects         []Object `json:"objects"`
	// Evidence says what was seen and what would be right.
	Evidence string `json:"evidence"`
}

// String is the violation on one line.
func (v Violation) String() string {
	var objects []string
	for _, object := range v.Objects {
		name := object.Name
		if object.Namespace != "" {
			name = object.Namespace + "/" + name
		}
		objects = append(objects, object.Kind+" "+name)
	}
	return fmt.Sprintf("%s (%s) at version %s, %s: %s", v.Statement.ID, v.Statement.Level, v.ResourceVersion, strings.Join(objects, ", "), v.Evidence)
}

// Judge judges a history event by event, in the order of resource versions. It does not judge the end as a
// state of rest: an Observer does that.
func Judge(ctx context.Context, history History, options Options) []Violation {
	observer := NewObserver(options)
	var violations []Violation
	for _, event := range history.Sorted() {
		violations = append(violations, observer.Observe(ctx, event)...)
	}
	return violations
}

// Observer follows a cluster and judges each write. It is not safe for concurrent use.
type Observer struct {
	options Options
	supply  *supply
	claims  map[key]*resourcev1.ResourceClaim
	pods    map[key]*corev1.Pod
	// preemptions are those for which no Pod was bound to the node yet.
	preemptions preemptions
	// wasReserved has the claims that were reserved at some time.
	wasReserved map[key]bool
	// holders are the allocations of each device that is not free.
	holders holders
	// journal has the objects that writes of the supply have replaced, newest last, as long as a decision may
	// rest on them.
	journal []replaced
	cel     *cel.Cache
	// version is that of the last event.
	version string
}

// holders are the results for each device.
type holders map[deviceID][]holder

// holder is a result of a claim.
type holder struct {
	claim  *resourcev1.ResourceClaim
	result *resourcev1.DeviceRequestAllocationResult
}

type replaced struct {
	time   time.Time
	id     key
	object runtime.Object
}

// NewObserver makes an Observer that has seen nothing.
func NewObserver(options Options) *Observer {
	return &Observer{
		options: options,
		supply:  newSupply(),
		claims:  map[key]*resourcev1.ResourceClaim{},
		pods:    map[key]*corev1.Pod{},
		holders: holders{},

		preemptions: preemptions{},
		wasReserved: map[key]bool{},

		cel: cel.NewCache(compiledExpressions, cel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true}),
	}
}

// Observe takes the next event, in the order of resource versions, and returns what it violates. An event that
// was seen already changes nothing, so a watch may start again with a list.
func (o *Observer) Observe(ctx context.Context, event Event) []Violation {
	if event.Type != watch.Added && event.Type != watch.Modified && event.Type != watch.Deleted {
		return nil
	}
	if version := versionOf(event.Object); version != "" {
		o.version = version
	}
	isDeleted := event.Type == watch.Deleted
	switch object := event.Object.(type) {
	case *resourcev1.ResourceClaim:
		return o.observeClaim(ctx, object, isDeleted, event.Time)
	case *corev1.Pod:
		return o.observePod(object, isDeleted, event.Time)
	case *corev1.ResourceQuota:
		if id := keyOf(object, "ResourceQuota"); isDeleted {
			delete(o.supply.quotas, id)
		} else {
			o.supply.quotas[id] = object
		}
	case *resourcev1.ResourceSlice:
		o.observeSupply(keyOf(object, "ResourceSlice"), object, isDeleted, event.Time)
	case *resourcev1.DeviceClass:
		o.observeSupply(keyOf(object, "DeviceClass"), object, isDeleted, event.Time)
	case *resourcev1.DeviceTaintRule:
		o.observeSupply(keyOf(object, "DeviceTaintRule"), object, isDeleted, event.Time)
	case *corev1.Node:
		o.observeSupply(keyOf(object, "Node"), object, isDeleted, event.Time)
	case *corev1.Namespace:
		o.observeSupply(keyOf(object, "Namespace"), object, isDeleted, event.Time)
	}
	return nil
}

// observeSupply takes a change of what allocations are judged by.
func (o *Observer) observeSupply(id key, object runtime.Object, isDeleted bool, at time.Time) {
	if isDeleted {
		object = nil
	}
	old := o.supply.replace(id, object)
	if changesPlaces(old, object) {
		clear(o.preemptions) // the places that Pods were to get may be gone
	}
	if o.options.DecisionLag == 0 || at.IsZero() {
		return
	}
	o.journal = append(o.journal, replaced{at, id, old})
	for len(o.journal) > 0 && at.Sub(o.journal[0].time) > o.options.DecisionLag {
		o.journal = o.journal[1:]
	}
}

// judgeBySupply judges a write by the supply of now. What violates something then, but nothing by the supply of an
// earlier moment on which the decision may rest, is no violation.
func (o *Observer) judgeBySupply(at time.Time, judge func() []Violation) []Violation {
	violations := judge()
	if len(violations) == 0 || at.IsZero() {
		return violations
	}
	isDecidedEarlier := false
	swap := func(entry *replaced) { // it undoes a write of the supply, or does it again
		entry.object = o.supply.replace(entry.id, entry.object)
	}
	first := len(o.journal)
	for first > 0 && !isDecidedEarlier && at.Sub(o.journal[first-1].time) <= o.options.DecisionLag {
		first--
		swap(&o.journal[first])
		isDecidedEarlier = len(judge()) == 0
	}
	for ; first < len(o.journal); first++ {
		swap(&o.journal[first])
	}
	if isDecidedEarlier {
		return nil
	}
	return violations
}

// violation makes a violation at the version of the last event.
func (o *Observer) violation(id string, objects []Object, evidence string, args ...any) Violation {
	return Violation{Statement: statementByID(id), ResourceVersion: o.version, Objects: objects, Evidence: fmt.Sprintf(evidence, args...)}
}

func nameObject(kind string, object metav1.Object) Object {
	return Object{Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID()}
}

func isSame(a, b metav1.Object) bool { return a.GetUID() == b.GetUID() }
