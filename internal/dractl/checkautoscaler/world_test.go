package checkautoscaler

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kwok-dra/kwok-dra/internal/dractl/checkscheduler/story"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/documents"
	"github.com/kwok-dra/kwok-dra/internal/dractl/trial"
	"github.com/kwok-dra/kwok-dra/internal/dractl/trial/trialtest"
	"github.com/kwok-dra/kwok-dra/internal/testing/apitest"
	"github.com/kwok-dra/kwok-dra/pkg/drajudge"
)

// twoGroups are nodes with two and with four GPUs, of which the latter have a NIC and a taint too. The first have a
// template, and the others slices.
const twoGroups = `
apiVersion: v1
kind: Node
metadata: {name: small, labels: {group: small}}
---
apiVersion: v1
kind: Node
metadata: {name: large, labels: {group: large}}
spec: {taints: [{key: gpus, value: many, effect: NoSchedule}]}
---
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: ResourcePoolTemplate
metadata: {name: small}
spec:
  driver: gpu.example.com
  nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: group, operator: In, values: [small]}]}]}
  devices: [{name: gpu, count: 2, attributes: {uuid: "{{ uuid .Node.metadata.uid .Index }}"}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: large-gpus}
spec:
  driver: gpu.example.com
  nodeName: large
  pool: {name: large, generation: 1, resourceSliceCount: 1}
  devices: [{name: a}, {name: b}, {name: c}, {name: d}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: large-nics}
spec:
  driver: nic.example.com
  nodeName: large
  pool: {name: large, generation: 1, resourceSliceCount: 1}
  devices: [{name: nic}]
`

func groupsOf(t *testing.T, text string) ([]*group, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "groups.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return readGroups(t.Context(), cli.Streams{}, documents.Files{Paths: []string{file}}, apitest.New())
}

// inWorld runs a test in a world with a fake cluster.
func inWorld(t *testing.T, f *fake, test func(ctx context.Context, w *world)) {
	t.Helper()
	groups, err := groupsOf(t, twoGroups)
	require.NoError(t, err)
	slices.Reverse(groups) // the fake autoscaler prefers small nodes
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		f.Server, f.MayLackPods, f.groups = apitest.New(), true, groups
		f.emptySince, f.madeAt, f.servedPods = map[string]time.Time{}, map[string]time.Time{}, map[types.UID]bool{}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			f.run(ctx)
		}()
		synctest.Wait()
		w := &world{
			client: f, player: f, groups: groups,
			statements: Statements(), problem: func() error { return nil }, quiet: 10 * time.Second,
			Times: trial.Times{Settle: 2 * time.Minute, Timeout: 10 * time.Minute, Shrink: 100 * time.Hour},
		}
		var err error
		w.nodesBefore, err = w.listNodes(ctx)
		require.NoError(t, err)
		test(ctx, w)
		require.Empty(t, f.StoryObjects(ctx), "left of the stories")
		cancel()
		<-ended
	})
}

// TestPlay plays six stories with each autoscaler. A right one violates nothing, a wrong one only what is wrong with it.
func TestPlay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		autoscaler *fake
		want       []string
	}{
		"right":                          {&fake{}, nil},
		"right, with nodes that stay":    {&fake{minimum: 1}, nil},
		"wasteful":                       {&fake{packsBadly: true}, nil},
		"makes nodes in vain":            {&fake{ignoresDevices: true}, []string{"node-fits", "node-made", "node-needed"}},
		"makes two nodes instead of one": {&fake{makesTwo: true}, []string{"node-needed"}},
		"makes none":                     {&fake{makesNone: true}, []string{"node-made"}},
		"removes nodes in use":           {&fake{removesUsed: true}, []string{"node-kept"}},
		"evicts Pods":                    {&fake{evictsPods: true}, []string{"node-kept"}},
		"leaves empty nodes":             {&fake{keepsEmpty: true}, []string{"node-removed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, c.autoscaler, func(ctx context.Context, w *world) {
				var violations []drajudge.Violation
				total := counts{}
				for seed := range int64(6) {
					found, err := w.playStory(ctx, seed, nil)
					require.NoError(t, err)
					violations = append(violations, found...)
					total.made, total.enough = total.made+w.counted.made, total.enough+w.counted.enough
				}
				require.Equal(t, c.want, trialtest.IDs(violations), "%v", violations)
				t.Logf("%d nodes made, %d are enough", total.made, total.enough)
				if name == "wasteful" {
					require.Greater(t, total.made, total.enough)
				}
			})
		})
	}
}

// Without devices on the new nodes nothing can be said of the autoscaler.
func TestPlayWithoutDriver(t *testing.T) {
	t.Parallel()
	inWorld(t, &fake{hasNoDriver: true, ignoresDevices: true, keepsEmpty: true}, func(ctx context.Context, w *world) {
		_, err := w.playStory(ctx, 1, nil)
		require.ErrorContains(t, err, "has 0 devices of gpu.example.com, and a node of group small should have 2")
	})
}

// TestPlayWithoutRest: an autoscaler that makes nodes in vain all the time is found out, though no state can be judged.
func TestPlayWithoutRest(t *testing.T) {
	t.Parallel()
	inWorld(t, &fake{ignoresDevices: true, neverRests: true}, func(ctx context.Context, w *world) {
		violations, err := w.playStory(ctx, 0, nil)
		require.ErrorContains(t, err, "did not come to rest")
		require.Contains(t, trialtest.IDs(violations), "node-fits")
	})
}

// Before a story, nodes that came after the start go if they are empty, and none that others use.
func TestAwaitFewNodes(t *testing.T) {
	t.Parallel()
	inWorld(t, &fake{keepsEmpty: true}, func(ctx context.Context, w *world) {
		f := w.client.(*fake)
		makeNode := func(g *group) (name string) {
			f.Turn.Lock()
			defer f.Turn.Unlock()
			f.makeNode(g)
			return fmt.Sprintf("%s-%d", g.Node.Name, f.made)
		}
		removeNode := func(name string) {
			f.Turn.Lock()
			defer f.Turn.Unlock()
			f.removeNode(name)
		}
		addPod := func(name, node string, change func(pod *corev1.Pod)) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "team", UID: types.UID(name)}, Spec: corev1.PodSpec{NodeName: node}}
			change(pod)
			f.Add(pod)
		}
		before := makeNode(w.groups[0])
		w.nodesBefore = f.nodes()
		addPod("old", before, func(*corev1.Pod) {})
		require.NoError(t, w.awaitFewNodes(ctx))

		makeNode(w.groups[1])
		removeNode(before)
		began := time.Now()
		require.NoError(t, w.awaitFewNodes(ctx), "as many nodes as at first, of another group")
		require.Greater(t, time.Since(began), w.Settle)
		require.Empty(t, f.nodes())

		name := makeNode(w.groups[0])
		require.NoError(t, w.awaitFewNodes(ctx), "a new node in place of the old one")
		require.Len(t, f.nodes(), 1)

		removeNode(name)
		name = makeNode(w.groups[1])
		addPod("daemon", name, func(pod *corev1.Pod) {
			pod.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "daemon", Controller: new(true)}}
		})
		addPod("static", name, func(pod *corev1.Pod) {
			pod.OwnerReferences = []metav1.OwnerReference{{Kind: "Node", Name: name, Controller: new(true)}}
		})
		addPod("ended", name, func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded })
		require.NoError(t, w.awaitFewNodes(ctx))
		require.Empty(t, f.nodes())

		name = makeNode(w.groups[1])
		addPod("web", name, func(*corev1.Pod) {})
		_, err := w.playStory(ctx, 1, nil)
		require.EqualError(t, err, "node "+name+" of group "+w.groups[1].Node.Name+" came after the start, and runs Pod team/web of others: the cluster must be idle")
		require.Equal(t, name, f.nodes()[0].Name)

		// The node is replaced by one of the same name after it was listed.
		other := f.nodes()[0]
		other.UID = "other"
		f.Remove(apitest.Get[corev1.Pod](f.Server, "team", "web"))
		require.NoError(t, w.deleteEmptyNode(ctx, &other))
		require.Len(t, f.nodes(), 1)
	})
}

func TestShrink(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		autoscaler *fake
		statement  string
		pods       int
	}{
		"makes none":           {&fake{makesNone: true}, "node-made", 1},
		"makes nodes in vain":  {&fake{ignoresDevices: true}, "node-fits", 1},
		"leaves empty nodes":   {&fake{keepsEmpty: true}, "node-removed", 1},
		"removes nodes in use": {&fake{removesUsed: true}, "node-kept", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, c.autoscaler, func(ctx context.Context, w *world) {
				seed := firstViolation(ctx, t, w, c.statement)
				evidence, err := w.newShrinker().Shrink(ctx, seed, c.statement, "")
				require.NoError(t, err)
				require.True(t, evidence.Reproduced)
				smallest, err := story.Read([]byte(evidence.Story))
				require.NoError(t, err)
				require.LessOrEqual(t, countPods(smallest), c.pods, evidence.Story)
			})
		})
	}
}

// firstViolation is the seed of the first story that violates a statement.
func firstViolation(ctx context.Context, t *testing.T, w *world, id string) int64 {
	t.Helper()
	for seed := range int64(10) {
		found, err := w.playStory(ctx, seed, nil)
		require.NoError(t, err)
		if slices.Contains(trialtest.IDs(found), id) {
			return seed
		}
	}
	t.Fatalf("no story violates %s", id)
	return 0
}

func countPods(s *story.Story) int {
	pods := 0
	for i := range s.Steps {
		for _, object := range s.Steps[i].Create {
			if _, isPod := object.(*corev1.Pod); isPod {
				pods++
			}
		}
	}
	return pods
}

// TestStories looks at what stories are made of.
func TestStories(t *testing.T) {
	t.Parallel()
	groups, err := groupsOf(t, twoGroups)
	require.NoError(t, err)
	misfits := 0
	for seed := range int64(100) {
		var first, second strings.Builder
		s := newStory("story", seed, groups)
		require.NoError(t, s.WriteYAML(&first))
		require.NoError(t, newStory("story", seed, groups).WriteYAML(&second))
		require.Equal(t, first.String(), second.String(), "a seed is a story")
		there := map[string]bool{}
		for i := range s.Steps {
			if s.Steps[i].Say == "Pods come that fit no group." {
				misfits++
			}
			for _, object := range s.Steps[i].Create {
				if _, isPod := object.(*corev1.Pod); isPod {
					there[object.GetName()] = true
				}
			}
			require.LessOrEqual(t, len(there), mostCounted)
			for _, deletion := range s.Steps[i].Delete {
				delete(there, deletion.Name)
			}
		}
		require.Empty(t, there, "Pods stay at the end of story %d", seed)
	}
	require.Greater(t, misfits, 30)
}

func TestGroups(t *testing.T) {
	t.Parallel()
	groups, err := groupsOf(t, twoGroups)
	require.NoError(t, err)
	require.Equal(t, []string{"gpu.example.com", "nic.example.com"}, groups[0].drivers())
	require.Len(t, devicesByDriver(groups[1].Slices)["gpu.example.com"], 2)
	require.Equal(t, "110", groups[1].Node.Status.Allocatable.Pods().String())
	for name, c := range map[string]struct{ text, want string }{
		"none":       {"", "have no group"},
		"no labels":  {"{apiVersion: v1, kind: Node, metadata: {name: a}}", "group a: metadata.labels"},
		"no devices": {"{apiVersion: v1, kind: Node, metadata: {name: a, labels: {a: b}}}", "group a: its nodes have no devices"},
		"alike":      {strings.ReplaceAll(twoGroups, "{group: large}", "{group: small, size: large}"), "has all its labels too"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := groupsOf(t, c.text)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// Heartbeats do not keep a cluster from rest, nor do nodes that are of no group.
func TestNodeChanges(t *testing.T) {
	t.Parallel()
	groups, err := groupsOf(t, twoGroups)
	require.NoError(t, err)
	changes := &nodeChanges{groups: groups, last: map[types.UID]*corev1.Node{}}
	node := groups[0].Node.DeepCopy()
	edit := func(change func(*corev1.Node)) bool {
		node = node.DeepCopy()
		change(node)
		return changes.matters(watch.Event{Type: watch.Modified, Object: node})
	}
	require.True(t, edit(func(*corev1.Node) {}), "a new node")
	require.True(t, edit(func(node *corev1.Node) {
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	}), "it gets ready")
	require.False(t, edit(func(node *corev1.Node) { node.Status.Conditions[0].LastHeartbeatTime = metav1.Now() }), "a heartbeat")
	require.True(t, edit(func(node *corev1.Node) { node.Spec.Unschedulable = true }), "a cordon")
	require.True(t, edit(func(node *corev1.Node) { node.DeletionTimestamp = new(metav1.Now()) }), "a deletion")
	require.True(t, changes.matters(watch.Event{Type: watch.Deleted, Object: node}))
	require.False(t, changes.matters(watch.Event{Type: watch.Added, Object: &corev1.Node{}}), "a node of no group")
	require.True(t, changes.matters(watch.Event{Type: watch.Added, Object: &resourcev1.ResourceSlice{}}))
}
