package stages_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/utils/gotpl"
	"sigs.k8s.io/kwok/pkg/utils/lifecycle"
)

// begin is the time at which every story begins.
var begin = time.Date(2026, 1, 2, 15, 4, 5, 250e6, time.UTC)

// object is what Stages are played on.
type object interface {
	*corev1.Node | *corev1.Pod
	metav1.Object
}

// player plays Stages on one Node or Pod by the rules of kwok's controllers, the
// same in 0.6, 0.7 and 0.8, in a time of its own: every change of the object
// picks a Stage anew and its delay starts anew, the Stage picked before is
// cancelled (unless none is picked), and a Stage whose patch changes nothing
// leaves the object idle until somebody else changes it.
type player[T object] struct {
	t        *testing.T
	stages   lifecycle.Lifecycle
	renderer gotpl.Renderer
	object   T
	fresh    func() T
	agenda
	past
	// changed is told of every change of the object.
	changed func()
}

// agenda is what kwok, and somebody other than kwok, does next.
type agenda struct {
	now     time.Time
	pending *job
	other   *deed
}

// past is what has been.
type past struct {
	played []play
	events []string
	gone   bool
}

type job struct {
	stage *lifecycle.Stage
	due   time.Time
}

type deed struct {
	due time.Time
	do  func()
}

type play struct {
	stage string
	at    time.Time
}

// newPlayer does not begin to play before pick.
func newPlayer[T object](t *testing.T, fresh func() T, stages ...[]string) *player[T] {
	t.Helper()
	p := &player[T]{t: t, stages: newLifecycle(t, stages...), fresh: fresh, object: fresh(), agenda: agenda{now: begin}, changed: func() {}}
	p.renderer = newRenderer(func() time.Time { return p.now })
	p.object.SetCreationTimestamp(metav1.NewTime(p.now))
	return p
}

// pick does what kwok does with an event of the object.
func (p *player[T]) pick() {
	p.changed()
	event := &lifecycle.Event{Labels: p.object.GetLabels(), Annotations: p.object.GetAnnotations(), Data: p.object}
	stage, err := p.stages.Match(p.t.Context(), event)
	require.NoError(p.t, err)
	if stage == nil {
		return
	}
	delay, _, err := stage.Delay(p.t.Context(), event, p.now)
	require.NoError(p.t, err)
	p.pending = &job{stage: stage, due: p.now.Add(max(delay, 0))}
}

// next is when something is due, and what.
func (p *player[T]) next() (time.Time, func()) {
	switch {
	case p.gone || p.pending == nil && p.other == nil:
		return time.Time{}, nil
	case p.pending == nil || p.other != nil && p.other.due.Before(p.pending.due):
		return p.other.due, p.doOther
	}
	return p.pending.due, p.play
}

// run lets time pass.
func (p *player[T]) run(d time.Duration) {
	p.t.Helper()
	end := p.now.Add(d)
	for plays := 0; ; plays++ {
		due, do := p.next()
		if do == nil || due.After(end) {
			break
		}
		require.Less(p.t, plays, 10_000, "Stages play in a loop: %v", p.played[max(0, len(p.played)-5):])
		p.now = due
		do()
	}
	p.now = end
}

// until lets time pass until something holds, and tells how long that took.
func (p *player[T]) until(holds func() bool, limit time.Duration) time.Duration {
	p.t.Helper()
	start := p.now
	for !holds() {
		due, do := p.next()
		require.NotNil(p.t, do, "nothing is left to play: %v", p.played[max(0, len(p.played)-5):])
		require.LessOrEqual(p.t, due.Sub(start), limit)
		p.now = due
		do()
	}
	return p.now.Sub(start)
}

func (p *player[T]) doOther() {
	do := p.other.do
	p.other = nil
	do()
}

func (p *player[T]) play() {
	stage := p.pending.stage
	p.pending = nil
	p.played = append(p.played, play{stage: stage.Name(), at: p.now})
	event := func(event *internalversion.StageEvent) error {
		p.events = append(p.events, event.Reason)
		return nil
	}
	deletes := func() error {
		p.gone = len(p.object.GetFinalizers()) == 0
		return nil
	}
	patch := func(patch *lifecycle.Patch) error {
		p.patch(patch.Data)
		return nil
	}
	_, err := stage.DoSteps(0, nil, p.object, p.renderer, event, deletes, patch, nil)
	require.NoError(p.t, err)
}

func (p *player[T]) patch(patch []byte) {
	before, err := json.Marshal(p.object)
	require.NoError(p.t, err)
	stored := patched(p.t, before, patch, p.fresh())
	if string(stored) == string(before) {
		return
	}
	p.store(stored)
}

// patched is what the API server makes of a patch, in an empty object of the
// kind.
func patched[T object](t *testing.T, before, patch []byte, empty T) []byte {
	t.Helper()
	after, err := strategicpatch.StrategicMergePatch(before, patch, empty)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(after, empty))
	stored, err := json.Marshal(empty) // it keeps no fractions of a second
	require.NoError(t, err)
	return stored
}

func (p *player[T]) store(stored []byte) {
	p.object = p.fresh()
	require.NoError(p.t, json.Unmarshal(stored, p.object))
	p.pick()
}

// change changes the object as a user does.
func (p *player[T]) change(how func(T)) {
	encoded, err := json.Marshal(p.object)
	require.NoError(p.t, err)
	changed := p.fresh()
	require.NoError(p.t, json.Unmarshal(encoded, changed))
	how(changed)
	encoded, err = json.Marshal(changed)
	require.NoError(p.t, err)
	p.store(encoded)
}

// label sets a Stage's label to "true", or removes it.
func (p *player[T]) label(stage string, on bool) {
	p.change(func(object T) {
		labels := object.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		delete(labels, stage+".stage.kwok.x-k8s.io")
		if on {
			labels[stage+".stage.kwok.x-k8s.io"] = "true"
		}
		object.SetLabels(labels)
	})
}

func (p *player[T]) annotate(key, value string) {
	p.change(func(object T) {
		annotations := object.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[key] = value
		object.SetAnnotations(annotations)
	})
}

// count tells how often a Stage has been played.
func (p *past) count(stage string) int {
	n := 0
	for _, play := range p.played {
		if play.stage == stage {
			n++
		}
	}
	return n
}
