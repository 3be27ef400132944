package checkscheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/internal/dractl/checkscheduler/story"
	"github.com/kwok-dra/kwok-dra/internal/dractl/trial"
	"github.com/kwok-dra/kwok-dra/pkg/drajudge"
)

const (
	// quiet is how long nothing may happen before a cluster counts as at rest.
	quiet = 300 * time.Millisecond
	// decisionLag is how old the objects may be by which a scheduler decides.
	decisionLag = 5 * time.Second
)

// world is the cluster in which stories are played.
type world struct {
	client kubernetes.Interface
	player trial.Player
	canary *canary
	// newStory draws a story. All objects of it have the ID.
	newStory func(id string, seed int64) *story.Story
	// statements are those that count.
	statements []drajudge.Statement
	// problem returns why a program of the cluster has ended.
	problem func() error
	trial.Times
}

// playStory plays a story without some of its parts, and returns what it violates, even if it could not be played to the
// end. Nothing is left of it afterwards.
func (w *world) playStory(ctx context.Context, seed int64, without []int) (violations []drajudge.Violation, err error) {
	// Other IDs each time: deleting a namespace takes a while.
	s := w.newStory("story-"+uuid.NewString()[:8], seed).Without(without)
	version, err := w.canary.awaitTurn(ctx)
	if err != nil {
		return nil, err
	}
	selector := story.Label + "=" + s.ID
	sources, err := sourcesOf(ctx, w.client, s.ID, selector)
	if err != nil {
		return nil, err
	}
	nodes := nodeNames(s)
	recorder, err := trial.StartRecorder(ctx, sources, version, s.ID, func(event watch.Event) bool {
		pod, isPod := event.Object.(*corev1.Pod)
		return !isPod || pod.Namespace == s.ID || nodes[pod.Spec.NodeName]
	})
	if err != nil {
		return nil, err
	}
	defer recorder.Stop()
	defer func() {
		clearing, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUp)
		defer cancel()
		err = errors.Join(err, w.player.Clear(clearing, s))
	}()
	t := &judgement{world: w, Recorder: recorder, observer: drajudge.NewObserver(drajudge.Options{DecisionLag: decisionLag})}
	err = errors.Join(w.player.Play(ctx, s, t.judgeAtRest), t.judgeAtRest(ctx))
	return t.violations, err
}

func (w *world) newShrinker() *trial.Shrinker {
	return &trial.Shrinker{NewStory: w.newStory, Play: w.playStory, Limit: w.Shrink}
}

// nodeNames are the names of the nodes of a story.
func nodeNames(s *story.Story) map[string]bool {
	names := map[string]bool{}
	for i := range s.Steps {
		for _, object := range s.Steps[i].Create {
			if object.GetObjectKind().GroupVersionKind().Kind == "Node" {
				names[object.GetName()] = true
			}
		}
	}
	return names
}

// judgement judges one story while it is played.
type judgement struct {
	*world
	*trial.Recorder

	observer   *drajudge.Observer
	violations []drajudge.Violation
}

// judgeAtRest waits until the cluster is at rest, and judges what has happened. What is wrong at rest must stay wrong as long as a
// scheduler may take to try again.
func (t *judgement) judgeAtRest(ctx context.Context) error {
	began := time.Now()
	for {
		if err := t.awaitQuiet(ctx); err != nil {
			return err
		}
		atRest := t.selectNew(t.observer.AtRest(ctx))
		if len(atRest) > 0 && time.Since(began) < t.Settle {
			if err := trial.Pause(ctx, quiet); err != nil {
				return err
			}
			continue
		}
		t.violations = append(t.violations, atRest...)
		t.SkipTime(decisionLag + time.Second)
		return nil
	}
}

// awaitQuiet waits until nothing happens any more, though the scheduler has had its turn, and feeds the judge with what has
// happened.
func (t *judgement) awaitQuiet(ctx context.Context) error {
	began := time.Now()
	for time.Since(began) < t.Timeout {
		if err := t.problem(); err != nil {
			return err
		}
		if _, err := t.canary.awaitTurn(ctx); err != nil {
			return err
		}
		events, isTaken, err := t.TakeQuiet(ctx, quiet)
		if err != nil {
			return err
		}
		if isTaken {
			t.judge(ctx, events)
			return nil
		}
	}
	return fmt.Errorf("the cluster did not come to rest within %s", t.Timeout)
}

func (t *judgement) judge(ctx context.Context, events drajudge.History) {
	for _, event := range events {
		t.violations = append(t.violations, t.selectNew(t.observer.Observe(ctx, event))...)
	}
}

// selectNew returns the violations that count and are not known yet.
func (t *judgement) selectNew(violations []drajudge.Violation) []drajudge.Violation {
	return trial.SelectNew(t.violations, violations, t.statements)
}
