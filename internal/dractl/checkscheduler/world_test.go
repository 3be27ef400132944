package checkscheduler

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/dractl/checkscheduler/story"
	"github.com/kwok-dra/kwok-dra/internal/dractl/trial"
	"github.com/kwok-dra/kwok-dra/internal/dractl/trial/trialtest"
	"github.com/kwok-dra/kwok-dra/internal/testing/apitest"
	"github.com/kwok-dra/kwok-dra/pkg/drajudge"
)

// faults say what a scheduler does wrong, or slowly.
type faults struct {
	// forgetsDevices gives devices that are in use, toleratesAll tainted ones.
	forgetsDevices, toleratesAll bool
	// neverTriesAgain leaves a Pod waiting that has not fitted once.
	neverTriesAgain bool
	// rewords says of a Pod that waits at each look why it waits, in other words.
	rewords bool
	// backoff is how long a Pod waits for another try, and busy how long the scheduler does nothing at first.
	backoff, busy time.Duration
}

// fake is a cluster with a scheduler.
type fake struct {
	trialtest.Cluster
	faults

	tried map[string]time.Time
}

// tick is how often the scheduler looks at all Pods.
const tick = 20 * time.Millisecond

// schedule runs the scheduler until ctx ends.
func (f *fake) schedule(ctx context.Context) {
	for trial.Pause(ctx, tick+f.busy) == nil {
		f.busy = 0
		f.schedulePods(ctx)
	}
}

// schedulePods tries all Pods that wait once.
func (f *fake) schedulePods(ctx context.Context) {
	f.Turn.Lock()
	defer f.Turn.Unlock()
	pods, err := f.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	trialtest.Must(err)
	for i := range pods.Items {
		pod := &pods.Items[i]
		if f.rewords && pod.Spec.NodeName == "" {
			explainAgain(f, pod)
		}
		last, isTried := f.tried[string(pod.UID)]
		if pod.Spec.NodeName != "" || isTried && (f.neverTriesAgain || time.Since(last) < f.backoff) {
			continue
		}
		f.tried[string(pod.UID)] = time.Now()
		f.schedulePod(ctx, pod)
	}
}

// explainAgain says why a Pod waits, in words that nobody has used before.
func explainAgain(f *fake, pod *corev1.Pod) {
	apitest.Edit(f.Server, pod.Namespace, pod.Name, func(pod *corev1.Pod) {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: time.Now().String()}}
	})
}

// schedulePod binds a Pod to the first node that has devices for all its claims, each of which asks for one.
func (f *fake) schedulePod(ctx context.Context, pod *corev1.Pod) {
	nodes, err := f.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	trialtest.Must(err)
	for i := range nodes.Items {
		node := &nodes.Items[i]
		if isOnOther(pod, node) {
			continue
		}
		taken := f.takenDevices(ctx)
		given := map[string]resourcev1.DeviceRequestAllocationResult{}
		for _, ref := range pod.Spec.ResourceClaims {
			if _, err := f.ResourceV1().ResourceClaims(pod.Namespace).Get(ctx, *ref.ResourceClaimName, metav1.GetOptions{}); err != nil {
				continue // the claim does not exist
			}
			if result := f.findDevice(ctx, node.Name, taken); result != nil {
				taken[result.Device+node.Name] = true
				given[*ref.ResourceClaimName] = *result
			}
		}
		if len(given) < len(pod.Spec.ResourceClaims) {
			continue
		}
		for name, result := range given {
			apitest.Edit(f.Server, pod.Namespace, name, func(claim *resourcev1.ResourceClaim) {
				result.Request = claim.Spec.Devices.Requests[0].Name
				claim.Status.Allocation = &resourcev1.AllocationResult{
					Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{result}},
					NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
						{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node.Name}},
					}}}},
				}
				claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: pod.Name, UID: pod.UID}}
			})
		}
		apitest.Edit(f.Server, pod.Namespace, pod.Name, func(pod *corev1.Pod) { pod.Spec.NodeName = node.Name })
		return
	}
}

// isOnOther reports whether a Pod selects other nodes.
func isOnOther(pod *corev1.Pod, node *corev1.Node) bool {
	for key, value := range pod.Spec.NodeSelector {
		if node.Labels[key] != value {
			return true
		}
	}
	return false
}

func (f *fake) takenDevices(ctx context.Context) map[string]bool {
	taken := map[string]bool{}
	claims, err := f.ResourceV1().ResourceClaims("").List(ctx, metav1.ListOptions{})
	trialtest.Must(err)
	for i := range claims.Items {
		if allocation := claims.Items[i].Status.Allocation; allocation != nil && !f.forgetsDevices {
			for _, result := range allocation.Devices.Results {
				taken[result.Device+result.Pool] = true
			}
		}
	}
	return taken
}

func (f *fake) findDevice(ctx context.Context, node string, taken map[string]bool) *resourcev1.DeviceRequestAllocationResult {
	list, err := f.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{})
	trialtest.Must(err)
	for i := range list.Items {
		spec := &list.Items[i].Spec
		if *spec.NodeName != node {
			continue
		}
		for _, device := range spec.Devices {
			if !taken[device.Name+node] && (f.toleratesAll || len(device.Taints) == 0) {
				return &resourcev1.DeviceRequestAllocationResult{Driver: spec.Driver, Pool: spec.Pool.Name, Device: device.Name}
			}
		}
	}
	return nil
}

// threeForTwo is a story of three Pods on two nodes with a good device and a tainted one each. When the first Pod goes,
// the third fits.
func threeForTwo(id string, seed int64) *story.Story {
	template := `
steps:
- say: The fleet comes up.
  create:
  - {apiVersion: v1, kind: Namespace, metadata: {name: ID, labels: LABELS}}
  - apiVersion: resource.k8s.io/v1
    kind: DeviceClass
    metadata: {name: ID-gpu, labels: LABELS}
    spec: {selectors: [{cel: {expression: device.driver == "ID.example.com"}}]}
`
	for _, node := range []string{"a", "b"} {
		template += strings.ReplaceAll(`
  - apiVersion: v1
    kind: Node
    metadata: {name: ID-NODE, labels: LABELS}
    status: {allocatable: {pods: "10"}}
  - apiVersion: resource.k8s.io/v1
    kind: ResourceSlice
    metadata: {name: ID-NODE, labels: LABELS}
    spec:
      driver: ID.example.com
      nodeName: ID-NODE
      pool: {name: ID-NODE, generation: 1, resourceSliceCount: 1}
      devices:
      - {name: tainted, taints: [{key: broken, effect: NoSchedule, timeAdded: "2026-01-01T00:00:00Z"}]}
      - {name: good}
`, "NODE", node)
	}
	template += `
- say: Three Pods come.
  rest: true
  create:
`
	for _, pod := range []string{"one", "two", "three"} {
		template += strings.ReplaceAll(`
  - apiVersion: resource.k8s.io/v1
    kind: ResourceClaim
    metadata: {name: POD, namespace: ID, labels: LABELS}
    spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: ID-gpu, allocationMode: ExactCount, count: 1}}]}}
  - apiVersion: v1
    kind: Pod
    metadata: {name: POD, namespace: ID, labels: LABELS}
    spec:
      nodeSelector: LABELS
      containers: [{name: main, image: none, resources: {claims: [{name: gpu}]}}]
      resourceClaims: [{name: gpu, resourceClaimName: POD}]
`, "POD", pod)
	}
	template += `
- say: The first one goes.
  rest: true
  delete:
  - {apiVersion: v1, kind: Pod, name: one}
  - {apiVersion: resource.k8s.io/v1, kind: ResourceClaim, name: one}
`
	s, err := story.Read([]byte(strings.NewReplacer("ID", id, "LABELS", "{"+story.Label+": "+id+"}").Replace(template)))
	trialtest.Must(err)
	s.ID, s.Seed = id, seed
	return s
}

// inWorld runs a test in a world with a fake cluster.
func inWorld(t *testing.T, scheduler faults, test func(ctx context.Context, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		f := &fake{Cluster: trialtest.Cluster{Server: apitest.New()}, faults: scheduler, tried: map[string]time.Time{}}
		w := &world{
			client: f, player: f, newStory: threeForTwo,
			statements: drajudge.Statements(),
			problem:    func() error { return nil },
			canary:     &canary{client: f, scheduler: corev1.DefaultSchedulerName, name: "canary", timeout: time.Minute},
			Times:      trial.Times{Settle: 15 * time.Second, Timeout: time.Minute, Shrink: time.Hour},
		}
		require.NoError(t, w.canary.createObjects(ctx))
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			f.schedule(ctx)
		}()
		test(ctx, w)
		require.Empty(t, f.StoryObjects(ctx), "left of the stories")
		require.NoError(t, w.canary.deleteObjects(ctx))
		nodes, err := f.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		require.NoError(t, err)
		require.Empty(t, nodes.Items)
		cancel()
		<-ended
	})
}

func TestPlay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		scheduler faults
		want      []string
	}{
		"a right scheduler":                  {faults{}, nil},
		"a right one that waits for a while": {faults{backoff: 10 * time.Second}, nil},
		"a right one that is busy at first":  {faults{busy: 30 * time.Second}, nil},
		"a right one that explains again":    {faults{rewords: true}, nil},
		"gives a device twice":               {faults{forgetsDevices: true}, []string{"device-once"}},
		"ignores taints":                     {faults{toleratesAll: true}, []string{"taints-tolerated"}},
		"leaves a Pod waiting":               {faults{neverTriesAgain: true}, []string{"pod-placed"}},
		"tries again too late":               {faults{backoff: time.Minute}, []string{"pod-placed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, c.scheduler, func(ctx context.Context, w *world) {
				violations, err := w.playStory(ctx, 1, nil)
				require.NoError(t, err)
				require.Equal(t, c.want, trialtest.IDs(violations), "%v", violations)
			})
		})
	}
}

func TestPlayWithoutScheduler(t *testing.T) {
	t.Parallel()
	inWorld(t, faults{busy: time.Hour}, func(ctx context.Context, w *world) {
		_, err := w.playStory(ctx, 1, nil)
		require.ErrorContains(t, err, "no scheduler named default-scheduler bound Pod canary-")
	})
}

func TestPlayLeavesNothingWhenInterrupted(t *testing.T) {
	t.Parallel()
	inWorld(t, faults{neverTriesAgain: true}, func(ctx context.Context, w *world) {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second) // while it waits whether the Pod gets a place
		defer cancel()
		_, err := w.playStory(ctx, 1, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestShrink(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		scheduler faults
		statement string
		want      []string
	}{
		"gives a device twice": {faults{forgetsDevices: true}, "device-once", []string{
			"Namespace story", "DeviceClass story-gpu", "Node story-a", "ResourceSlice story-a good",
			"ResourceClaim one", "Pod one", "ResourceClaim two", "Pod two",
		}},
		"ignores taints": {faults{toleratesAll: true}, "taints-tolerated", []string{
			"Namespace story", "DeviceClass story-gpu", "Node story-a", "ResourceSlice story-a tainted", "ResourceClaim one", "Pod one",
		}},
		// The taint has gone from the device.
		"leaves a Pod waiting": {faults{neverTriesAgain: true}, "pod-placed", []string{
			"Namespace story", "DeviceClass story-gpu", "Node story-a", "ResourceSlice story-a tainted",
			"ResourceClaim one", "Pod one", "ResourceClaim two", "Pod two", "delete ResourceClaim one",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, c.scheduler, func(ctx context.Context, w *world) {
				evidence, err := w.newShrinker().Shrink(ctx, 1, c.statement, "")
				require.NoError(t, err)
				require.True(t, evidence.Reproduced)
				require.Equal(t, w.player.(*fake).Plays, evidence.Plays)
				smallest, err := story.Read([]byte(evidence.Story))
				require.NoError(t, err)
				require.Equal(t, c.want, outline(smallest), evidence.Story)
			})
		})
	}
}

// outline names the objects of a story, and the devices of slices.
func outline(s *story.Story) []string {
	var lines []string
	for i := range s.Steps {
		for _, object := range s.Steps[i].Create {
			line := object.GetObjectKind().GroupVersionKind().Kind + " " + object.GetName()
			if slice, isSlice := object.(*resourcev1.ResourceSlice); isSlice {
				for _, device := range slice.Spec.Devices {
					line += " " + device.Name
				}
			}
			lines = append(lines, line)
		}
		for _, deletion := range s.Steps[i].Delete {
			lines = append(lines, fmt.Sprintf("delete %s %s", deletion.Kind, deletion.Name))
		}
	}
	return lines
}

// A violation that is not seen again is reported with the whole story.
func TestShrinkWhatIsNotSeenAgain(t *testing.T) {
	t.Parallel()
	inWorld(t, faults{}, func(ctx context.Context, w *world) {
		evidence, err := w.newShrinker().Shrink(ctx, 1, "device-once", "seen once")
		require.NoError(t, err)
		require.False(t, evidence.Reproduced)
		require.Equal(t, 3, evidence.Plays)
		require.Equal(t, evidence.Whole, evidence.Parts)
		require.Equal(t, "seen once", evidence.Seen)
		var whole bytes.Buffer
		require.NoError(t, threeForTwo("story", 1).WriteYAML(&whole))
		require.Equal(t, whole.String(), evidence.Story)
	})
}

func TestShrinkEndsInTime(t *testing.T) {
	t.Parallel()
	inWorld(t, faults{neverTriesAgain: true}, func(ctx context.Context, w *world) {
		w.Shrink = 30 * time.Second
		began := time.Now()
		evidence, err := w.newShrinker().Shrink(ctx, 1, "pod-placed", "")
		require.NoError(t, err)
		require.True(t, evidence.Reproduced)
		require.Less(t, time.Since(began), 2*time.Minute)
	})
}
