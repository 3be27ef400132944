package checkautoscaler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/internal/dractl/checkscheduler/story"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/trial"
	"github.com/kwok-dra/kwok-dra/pkg/drajudge"
)

const (
	// pollInterval is how often the command compares with the API server what it has seen.
	pollInterval = 100 * time.Millisecond
	// cleanUp bounds the deletion of what was created.
	cleanUp = time.Minute
)

// world is the cluster in which stories are played.
type world struct {
	client kubernetes.Interface
	player trial.Player
	groups []*group
	// nodesBefore are the nodes of groups that were there at first.
	nodesBefore []corev1.Node
	// statements are those that count.
	statements []drajudge.Statement
	// problem returns why a program of the cluster has ended.
	problem func() error
	// quiet is how long nothing may happen before a cluster counts as at rest.
	quiet time.Duration
	trial.Times

	// counted is of the last play.
	counted counts
}

func (w *world) newStory(id string, seed int64) *story.Story { return newStory(id, seed, w.groups) }

// playStory plays a story without some of its parts, and returns what it violates, even if it could not be played to the
// end. Nodes may be left of it.
func (w *world) playStory(ctx context.Context, seed int64, without []int) (violations []drajudge.Violation, err error) {
	w.counted = counts{}
	// Other IDs each time: deleting a namespace takes a while.
	s := w.newStory("story-"+uuid.NewString()[:8], seed).Without(without)
	if err := w.awaitFewNodes(ctx); err != nil {
		return nil, err
	}
	changes := &nodeChanges{groups: w.groups, last: map[types.UID]*corev1.Node{}}
	recorder, err := trial.StartRecorder(ctx, w.listSources(s.ID), "", s.ID, func(event watch.Event) bool {
		if pod, isPod := event.Object.(*corev1.Pod); isPod {
			return pod.Namespace == s.ID || pod.Spec.NodeName != ""
		}
		return changes.matters(event)
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
	existing, err := w.awaitQuiet(ctx, recorder, time.Now())
	if err != nil {
		return nil, err
	}
	j := &judgement{world: w, recorder: recorder, judge: newJudge(ctx, w.groups, existing)}
	err = w.player.Play(ctx, s, j.judgeAtRest)
	w.counted = j.judge.total
	return j.violations, err
}

func (w *world) newShrinker() *trial.Shrinker {
	return &trial.Shrinker{NewStory: w.newStory, Play: w.playStory, Limit: w.Shrink}
}

// listSources are the objects that the judge looks at. Pods are watched in all namespaces: those of others take room.
func (w *world) listSources(namespace string) []trial.Source {
	core, resource := w.client.CoreV1(), w.client.ResourceV1()
	return []trial.Source{
		trial.NewSource("DeviceClass", resource.DeviceClasses(), resource.DeviceClasses(), metav1.ListOptions{}),
		trial.NewSource("ResourceSlice", resource.ResourceSlices(), resource.ResourceSlices(), metav1.ListOptions{}),
		trial.NewSource("ResourceClaim", resource.ResourceClaims(namespace), resource.ResourceClaims(namespace), metav1.ListOptions{}),
		trial.NewSource("Node", core.Nodes(), core.Nodes(), metav1.ListOptions{}),
		trial.NewSource("Pod", core.Pods(namespace), core.Pods(metav1.NamespaceAll), metav1.ListOptions{}),
	}
}

// nodeChanges tells what happens to nodes of groups from heartbeats, and from what happens to other nodes.
type nodeChanges struct {
	groups []*group

	mu   sync.Mutex
	last map[types.UID]*corev1.Node
}

func (c *nodeChanges) matters(event watch.Event) bool {
	node, isNode := event.Object.(*corev1.Node)
	if !isNode {
		return true
	}
	if !slices.ContainsFunc(c.groups, func(g *group) bool { return g.hasNode(node) }) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.last[node.UID]
	c.last[node.UID] = node
	return event.Type == watch.Deleted || last == nil ||
		!apiequality.Semantic.DeepEqual(last.Spec, node.Spec) || !maps.Equal(last.Labels, node.Labels) || isReady(last) != isReady(node) ||
		!apiequality.Semantic.DeepEqual(last.Status.Allocatable, node.Status.Allocatable) || (last.DeletionTimestamp == nil) != (node.DeletionTimestamp == nil)
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// groupOf returns the group of a node, or nil.
func (w *world) groupOf(node *corev1.Node) *group {
	i := slices.IndexFunc(w.groups, func(g *group) bool { return g.hasNode(node) })
	if i < 0 {
		return nil
	}
	return w.groups[i]
}

// listNodes returns the nodes of groups.
func (w *world) listNodes(ctx context.Context) ([]corev1.Node, error) {
	list, err := w.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	return slices.DeleteFunc(list.Items, func(node corev1.Node) bool { return w.groupOf(&node) == nil }), nil
}

// surplusNodes returns of each group as many nodes as it has more than at first, all of which came later. One node of a group
// is as good as another: an autoscaler may keep a new one in place of an old one.
func (w *world) surplusNodes(ctx context.Context) ([]corev1.Node, error) {
	nodes, err := w.listNodes(ctx)
	if err != nil {
		return nil, err
	}
	surplus, isOld := map[*group]int{}, map[types.UID]bool{}
	for i := range w.nodesBefore {
		surplus[w.groupOf(&w.nodesBefore[i])]--
		isOld[w.nodesBefore[i].UID] = true
	}
	for i := range nodes {
		surplus[w.groupOf(&nodes[i])]++
	}
	return slices.DeleteFunc(nodes, func(node corev1.Node) bool {
		g := w.groupOf(&node)
		if isOld[node.UID] || surplus[g] <= 0 {
			return true
		}
		surplus[g]--
		return false
	}), nil
}

// awaitFewNodes waits for the nodes of earlier stories to go. Those that the autoscaler leaves, which is reported already, it
// deletes: the Pods of the next story would need no new ones.
func (w *world) awaitFewNodes(ctx context.Context) error {
	seen := map[types.UID]time.Time{}
	for began := time.Now(); ; {
		nodes, err := w.surplusNodes(ctx)
		if err != nil || len(nodes) == 0 {
			return err
		}
		if waited := time.Since(began); waited > 2*w.Settle {
			return fmt.Errorf("nodes of earlier stories are still there after %s: delete %s", waited.Round(time.Second), cli.FirstFew(namesOf(nodes), 3))
		}
		if err := w.deleteLasting(ctx, nodes, seen); err != nil {
			return err
		}
		if err := trial.Pause(ctx, time.Second); err != nil {
			return err
		}
	}
}

// deleteLasting deletes those of some nodes that are there for longer than the autoscaler may leave them empty. seen says since
// when each is known to be there.
func (w *world) deleteLasting(ctx context.Context, nodes []corev1.Node, seen map[types.UID]time.Time) error {
	for i := range nodes {
		node := &nodes[i]
		if seen[node.UID].IsZero() {
			seen[node.UID] = time.Now()
		}
		if time.Since(seen[node.UID]) <= w.Settle || node.DeletionTimestamp != nil {
			continue
		}
		if err := w.deleteEmptyNode(ctx, node); err != nil {
			return err
		}
	}
	return nil
}

func namesOf(nodes []corev1.Node) []string {
	var names []string
	for i := range nodes {
		names = append(names, nodes[i].Name)
	}
	return names
}

// deleteEmptyNode deletes a node that came after the start, unless Pods run there: those of stories have gone.
func (w *world) deleteEmptyNode(ctx context.Context, node *corev1.Node) error {
	pods, err := w.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node.Name})
	if err != nil {
		return fmt.Errorf("list the Pods of node %s: %w", node.Name, err)
	}
	for i := range pods.Items {
		if pod := &pods.Items[i]; needsNode(pod) {
			return fmt.Errorf("node %s of group %s came after the start, and runs Pod %s/%s of others: the cluster must be idle", node.Name, w.groupOf(node).Node.Name, pod.Namespace, pod.Name)
		}
	}
	err = w.client.CoreV1().Nodes().Delete(ctx, node.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &node.UID}})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete node %s of an earlier story: %w", node.Name, err)
	}
	return nil
}

// judgement judges one story while it is played.
type judgement struct {
	*world

	recorder   *trial.Recorder
	judge      *judge
	violations []drajudge.Violation
}

// judgeAtRest waits until the cluster is at rest, and judges what has happened. What is wrong at rest must stay wrong while nothing
// happens, as long as the autoscaler may take.
func (j *judgement) judgeAtRest(ctx context.Context) error {
	began := time.Now()
	for {
		events, err := j.awaitQuiet(ctx, j.recorder, began)
		for _, event := range events {
			j.add(j.judge.observeEvent(ctx, event))
		}
		j.add(j.judge.judgeNodes())
		if err != nil {
			return err
		}
		violations, problems := j.judge.judgeRest(ctx)
		violations = trial.SelectNew(j.violations, violations, j.statements)
		_, since, err := j.recorder.State()
		if err != nil {
			return err
		}
		if len(violations)+len(problems) > 0 && since < j.Settle {
			if err := trial.Pause(ctx, min(j.quiet, j.Settle-since)); err != nil {
				return err
			}
			continue
		}
		j.violations = append(j.violations, violations...)
		j.judge.closeRest(ctx)
		if len(problems) > 0 {
			return fmt.Errorf("judge the autoscaler: %s", problems[0])
		}
		return nil
	}
}

// add adds violations that count and are not known yet.
func (j *judgement) add(violations []drajudge.Violation) {
	j.violations = append(j.violations, trial.SelectNew(j.violations, violations, j.statements)...)
}

// awaitQuiet waits until nothing happens any more, and returns what has happened, even if there is no end to it: the nodes
// of an autoscaler that never rests are judged too.
func (w *world) awaitQuiet(ctx context.Context, recorder *trial.Recorder, began time.Time) (drajudge.History, error) {
	quiet, restless := w.quiet, error(nil)
	for {
		if err := w.problem(); err != nil {
			return nil, err
		}
		if time.Since(began) > w.Timeout {
			quiet, restless = 0, fmt.Errorf("the cluster did not come to rest within %s", w.Timeout)
		}
		events, isTaken, err := recorder.TakeQuiet(ctx, quiet)
		switch {
		case err != nil:
			return nil, err
		case isTaken || time.Since(began) > w.Timeout+w.quiet:
			return events, restless
		}
		if err := trial.Pause(ctx, pollInterval); err != nil {
			return nil, err
		}
	}
}
