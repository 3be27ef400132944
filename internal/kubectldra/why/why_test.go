package why

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kwok-dra/kwok-dra/internal/kubectldra/internal/worldtest"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/reading"
)

// train is a Pod of a Job that wants two GPUs.
const train = `
apiVersion: v1
kind: Pod
metadata:
  name: train-0
  namespace: ml
  uid: train-0
  labels: {job-name: train}
  creationTimestamp: "2026-01-02T04:00:05Z"
  ownerReferences: [{apiVersion: batch/v1, kind: Job, name: train, uid: train, controller: true}]
spec:
  schedulerName: default-scheduler
  containers: [{name: main, image: i, resources: {requests: {cpu: 2}}}]
  resourceClaims: [{name: gpus, resourceClaimName: two}]
status:
  phase: Pending
  conditions:
  - {type: PodScheduled, status: "False", reason: Unschedulable, message: "0/1 nodes are available: 1 cannot allocate all claims.", lastTransitionTime: "2026-01-02T04:00:05Z"}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: two, namespace: ml, uid: two}
spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: gpu, allocationMode: ExactCount, count: 2}}]}}
---
`

const job = `
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: ml}
spec: {parallelism: 2, selector: {matchLabels: {job-name: train}}, template: {spec: {}}}
---
`

// TestWhy asks about Pods, claims and workloads, and expects all that is said.
func TestWhy(t *testing.T) {
	t.Parallel()
	lack := `only 1 of 2 devices of class gpu on 1 node can be had: 1 allocated (ml/holder 1); request gpus wants 2 on one node; nearest: node gpu-0 lacks 1
`
	deleted := worldtest.Holder(corev1.PodRunning)
	deleted[1].(*resourcev1.ResourceClaim).DeletionTimestamp = new(worldtest.Now)
	inZone := worldtest.TwoGPUs()
	inZone[0].(*corev1.Node).Labels = map[string]string{"zone": "a"}
	for name, test := range map[string]struct {
		objects   []any
		arguments []string
		want      string
	}{
		"a Pod": {
			[]any{worldtest.TwoGPUs(), worldtest.Holder(corev1.PodRunning), train},
			[]string{"train-0"},
			"Pod ml/train-0 waits for a node (4m): " + lack + "  the scheduler says: Unschedulable: 0/1 nodes are available: 1 cannot allocate all claims.\n",
		},
		"a Pod that fits now": {
			[]any{worldtest.TwoGPUs(), train},
			[]string{"pod/train-0"},
			"Pod ml/train-0 waits for a node (4m): node gpu-0 has what it asks for now\n" +
				"  the scheduler has not tried again since, or something keeps the Pod away that is not considered here, such as volumes\n" +
				"  the scheduler says: Unschedulable: 0/1 nodes are available: 1 cannot allocate all claims.\n",
		},
		"something else than devices": {
			[]any{worldtest.TwoGPUs(), strings.Replace(train, "1 cannot allocate all claims.", "1 node(s) had volume node affinity conflict. preemption: 0/1 nodes are available: 1 No preemption victims found.", 1)},
			[]string{"train-0"},
			"Pod ml/train-0 waits for a node (4m): 1 node(s) had volume node affinity conflict, says the scheduler; node gpu-0 has what it asks for now\n" +
				"  the scheduler has not tried again since, or something keeps the Pod away that is not considered here, such as volumes\n" +
				"  the scheduler says: Unschedulable: 0/1 nodes are available: 1 node(s) had volume node affinity conflict.\n",
		},
		"another Pod is too near": {
			[]any{inZone, strings.Replace(train, "spec:\n", "spec:\n  affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, namespaceSelector: {matchLabels: {team: b}}, labelSelector: {matchLabels: {app: web}}}]}}\n", 1), `
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: other, labels: {app: web}}
spec: {nodeName: gpu-0, containers: [{name: main, image: i}]}
`, `
apiVersion: v1
kind: Namespace
metadata: {name: other, labels: {team: b}}
`},
			[]string{"train-0"},
			"Pod ml/train-0 waits for a node (4m): no node may have the Pod, whatever its devices: node gpu-0: didn't match pod anti-affinity rules: the Pod may not be beside Pods with app=web in the same zone\n" +
				"  the scheduler says: Unschedulable: 0/1 nodes are available: 1 cannot allocate all claims.\n",
		},
		"other Pods have the CPUs": {
			[]any{worldtest.TwoGPUs(), train, strings.ReplaceAll(`
apiVersion: v1
kind: Pod
metadata: {name: busy, namespace: other}
spec: {nodeName: gpu-0, containers: [{name: main, image: i, resources: {requests: {cpu: 7}}}]}
`, "\n\n", "\n")},
			[]string{"train-0"},
			"Pod ml/train-0 waits for a node (4m): no node may have the Pod, whatever its devices: node gpu-0: insufficient cpu (2 cpu requested, 1 of 8 left on node gpu-0)\n" +
				"  the scheduler says: Unschedulable: 0/1 nodes are available: 1 cannot allocate all claims.\n",
		},
		"a Pod that runs, and its claim": {
			[]any{worldtest.TwoGPUs(), worldtest.Holder(corev1.PodRunning)},
			[]string{"pod/holder", "claim/held"},
			"Pod ml/holder: it runs on node gpu-0\n\nClaim ml/held: it has gpu.example.com/gpu-0/gpu-0, reserved for Pod holder\n  Pod holder is Running: it runs on node gpu-0\n",
		},
		"a claim of a Pod that waits": {
			[]any{worldtest.TwoGPUs(), worldtest.Holder(corev1.PodRunning), train},
			[]string{"claim", "two"},
			"Claim ml/two: Pod train-0, which uses it, waits for a node: " + lack,
		},
		"a claim that nobody uses": {
			[]any{strings.Split(train, "---")[1]},
			[]string{"resourceclaim/two"},
			"Claim ml/two: no Pod uses it, and a claim gets devices only with a Pod that uses it\n",
		},
		"a claim that is being deleted": {
			[]any{deleted},
			[]string{"claim/held"},
			"Claim ml/held is being deleted: it stays until it is no longer reserved for Pod holder; Pod holder is Running: it runs on node gpu-0\n",
		},
		"a Job": {
			[]any{worldtest.TwoGPUs(), worldtest.Holder(corev1.PodRunning), train, job, strings.NewReplacer("train-0", "train-1", "two", "held", "Pending", "Running").Replace(strings.Split(train, "---")[0])},
			[]string{"job/train"},
			"Pod ml/train-0 waits for a node (4m): " + lack + "  the scheduler says: Unschedulable: 0/1 nodes are available: 1 cannot allocate all claims.\n1 of 2 Pods of Job train wait.\n",
		},
		"a Job that is suspended": {
			[]any{strings.Replace(job, "parallelism: 2", "parallelism: 2, suspend: true", 1)},
			[]string{"job/train"},
			"Job train has no Pods: it is suspended (spec.suspend), by its user or a queue\n",
		},
		"all of the namespace":              {[]any{worldtest.TwoGPUs(), worldtest.Holder(corev1.PodRunning)}, nil, "No Pod waits in namespace ml.\n"},
		"all of the namespace, one of them": {[]any{worldtest.TwoGPUs(), worldtest.Holder(corev1.PodRunning), train}, nil, "Pod ml/train-0 waits for a node (4m): " + lack + "  the scheduler says: Unschedulable: 0/1 nodes are available: 1 cannot allocate all claims.\n"},
		"the driver is gone from the node": {
			[]any{worldtest.Node("gpu-0", true), worldtest.Holder(corev1.PodPending)},
			[]string{"holder"},
			"Pod ml/holder waits for its claims to be prepared: driver gpu.example.com publishes no devices on node gpu-0: is its plugin running there?\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, worldtest.New(t, test.objects...).Ask(New, test.arguments...))
		})
	}
}

// TestRights says what the user may see of the reason, and which rights are missing.
func TestRights(t *testing.T) {
	t.Parallel()
	w := worldtest.New(t, worldtest.TwoGPUs(), worldtest.Holder(corev1.PodRunning), train)
	w.Forbid("nodes", "resourceslices", "resourceclaims", "pods")
	a := w.Run(New, "train-0")
	require.NoError(t, a.Err)
	first, _, _ := strings.Cut(a.Out, "\n")
	require.Equal(t, "Pod ml/train-0 waits for a node (4m): Unschedulable: 0/1 nodes are available: 1 cannot allocate all claims.", first)
	for _, resource := range []string{"nodes", "resourceslices", "resourceclaims in all namespaces"} {
		require.Contains(t, a.ErrOut, "cannot list "+resource+": ask for the ClusterRole dra-viewer")
	}
	require.NotContains(t, a.ErrOut, "pods", "they do not matter then")

	require.Contains(t, w.Run(New, "pod/train-0", "pod/holder").Out, "\nPod ml/holder: it runs on node gpu-0\n")
}

// TestReadsLittle: of Pods on nodes only their nodes matter.
func TestReadsLittle(t *testing.T) {
	t.Parallel()
	w := worldtest.New(t, worldtest.TwoGPUs(), worldtest.Holder(corev1.PodPending))
	require.Equal(t, "Pod ml/holder waits for its claims to be prepared: not prepared yet: held; the kubelet of node gpu-0 has reported no failure\n", w.Ask(New, "holder"))
	for _, action := range w.Client.Actions() {
		require.NotContains(t, []string{"list nodes", "list pods", "list deviceclasses"}, action.GetVerb()+" "+action.GetResource().Resource)
	}
}

// TestObjects are for programs.
func TestObjects(t *testing.T) {
	t.Parallel()
	w := worldtest.New(t, worldtest.TwoGPUs(), worldtest.Holder(corev1.PodRunning), train)
	require.Equal(t, "Unscheduled: 1 of 2 has ml/holder\n", w.Ask(New, "train-0", "-o",
		`jsonpath={range .items[*]}{.state}: {.requests[0].holders[0].devices} of {.requests[0].devicesOfClass} has {.requests[0].holders[0].name}{"\n"}{end}`))
	require.Equal(t, "pod/train-0\n", w.Ask(New, "-o", "name"))
}

// TestParseSubjects reads what kubectl get reads.
func TestParseSubjects(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]subject{
		"train-0":             {{podKind, "train-0"}},
		"a b":                 {{podKind, "a"}, {podKind, "b"}},
		"pod/a claim/b":       {{podKind, "a"}, {claimKind, "b"}},
		"deploy web":          {{deploymentKind, "web"}},
		"StatefulSet/db":      {{statefulSetKind, "db"}},
		"resourceclaims x y":  {{claimKind, "x"}, {claimKind, "y"}},
		"job.batch/train":     {{jobKind, "train"}},
		"deployment.apps/web": {{deploymentKind, "web"}},
	} {
		got, err := parseSubjects(strings.Fields(text))
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, wrong := range []string{"node/x", "pod/"} {
		_, err := parseSubjects([]string{wrong})
		require.ErrorContains(t, err, "parse "+wrong+": give a Pod, claim/NAME")
	}
}

// TestMissingSubject says what may be meant.
func TestMissingSubject(t *testing.T) {
	t.Parallel()
	require.EqualError(t, worldtest.New(t, train).Run(New, "train-O").Err, `there is no Pod "train-O" in namespace ml: did you mean train-0?`)
	require.ErrorContains(t, worldtest.New(t).Run(New, "job/train").Err, "get job train: ")
}

// TestInterrupted: a search that the user stops has no answer, right or wrong.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	w := worldtest.New(t, worldtest.TwoGPUs(), worldtest.Holder(corev1.PodRunning), train)
	ctx, cancel := context.WithCancel(t.Context())
	w.Client.PrependReactor("list", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
		cancel() // it is what is read last
		return false, nil, nil
	})
	q := &question{reader: reading.NewReaderOf(w.Client), namespace: worldtest.Namespace, now: worldtest.Now.Time}
	require.NoError(t, q.resolve(ctx, []subject{{podKind, "train-0"}}, ""))
	_, err := q.findReasons(ctx)
	require.ErrorIs(t, err, context.Canceled)
}
