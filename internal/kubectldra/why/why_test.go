package why

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kwok-dra/kwok-dra/internal/kubectldra/internal/worldtest"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/printing"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/reading"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// train is a Pod of a Job that wants two GPUs.
const train = `
apiVersion: v1
kind: Pod
metadata:
  name: train-0
  namespace: team
  uid: train-0
  labels: {job-name: train}
  creationTimestamp: "2026-01-02T03:00:05Z"
  ownerReferences: [{apiVersion: batch/v1, kind: Job, name: train, uid: train, controller: true}]
spec:
  schedulerName: default-scheduler
  containers: [{name: main, image: i, resources: {requests: {cpu: 2}}}]
  resourceClaims: [{name: gpus, resourceClaimName: two}]
status:
  phase: Pending
  conditions:
  - {type: PodScheduled, status: "False", reason: Unschedulable, message: "0/1 nodes are available: 1 cannot allocate all claims.", lastTransitionTime: "2026-01-02T03:00:05Z"}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: two, namespace: team, uid: two}
spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: gpu, allocationMode: ExactCount, count: 2}}]}}
---
`

const job = `
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: team}
spec: {parallelism: 2, selector: {matchLabels: {job-name: train}}, template: {spec: {}}}
---
`

// ask asks about the arguments, and returns what is printed.
func ask(t *testing.T, client *fake.Clientset, arguments ...string) (string, error) {
	t.Helper()
	var out strings.Builder
	c := &command{streams: genericiooptions.IOStreams{Out: &out}, print: printing.NewFlags()}
	flags := &cobra.Command{Use: "why"}
	c.print.AddTo(flags)
	require.NoError(t, flags.ParseFlags(arguments))
	subjects, err := parseSubjects(flags.Flags().Args())
	if err != nil {
		return "", err
	}
	q := &question{reader: reading.NewReaderOf(client), namespace: "team", now: now}
	if err := q.resolve(t.Context(), subjects, ""); err != nil {
		return "", err
	}
	answers, err := q.findReasons(t.Context())
	require.NoError(t, err)
	err = c.printAnswers(q, answers)
	for _, unseen := range q.reader.Unseen() {
		out.WriteString(printing.DescribeUnseen(unseen) + "\n")
	}
	return out.String(), err
}

// TestWhy asks about Pods, claims and workloads, and expects all that is said.
func TestWhy(t *testing.T) {
	t.Parallel()
	lack := `only 1 of 2 devices of class gpu on 1 node can be had: 1 allocated (team/holder 1); request gpus wants 2 on one node; nearest: node gpu-0 lacks 1
`
	for name, test := range map[string]struct {
		objects   []string
		arguments []string
		want      string
	}{
		"a Pod": {
			[]string{worldtest.Node, worldtest.Holder, train},
			[]string{"train-0"},
			"Pod team/train-0 waits for a node (4m): " + lack + "  the scheduler says: Unschedulable: 0/1 nodes are available: 1 cannot allocate all claims.\n",
		},
		"a Pod that fits now": {
			[]string{worldtest.Node, train},
			[]string{"pod/train-0"},
			"Pod team/train-0 waits for a node (4m): node gpu-0 has what it asks for now\n" +
				"  the scheduler has not tried again since, or something keeps the Pod away that is not considered here, such as volumes, and the spread and affinity of Pods\n" +
				"  the scheduler says: Unschedulable: 0/1 nodes are available: 1 cannot allocate all claims.\n",
		},
		"something else than devices": {
			[]string{worldtest.Node, strings.Replace(train, "1 cannot allocate all claims.", "1 node(s) didn't match pod anti-affinity rules. preemption: 0/1 nodes are available: 1 No preemption victims found.", 1)},
			[]string{"train-0"},
			"Pod team/train-0 waits for a node (4m): 1 node(s) didn't match pod anti-affinity rules, says the scheduler; node gpu-0 has what it asks for now\n" +
				"  the scheduler has not tried again since, or something keeps the Pod away that is not considered here, such as volumes, and the spread and affinity of Pods\n" +
				"  the scheduler says: Unschedulable: 0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules.\n",
		},
		"other Pods have the CPUs": {
			[]string{worldtest.Node, train, strings.ReplaceAll(`
apiVersion: v1
kind: Pod
metadata: {name: busy, namespace: other}
spec: {nodeName: gpu-0, containers: [{name: main, image: i, resources: {requests: {cpu: 7}}}]}
`, "\n\n", "\n")},
			[]string{"train-0"},
			"Pod team/train-0 waits for a node (4m): no node may have the Pod, whatever its devices: node gpu-0: insufficient cpu (2 cpu requested, 1 of 8 left on node gpu-0)\n" +
				"  the scheduler says: Unschedulable: 0/1 nodes are available: 1 cannot allocate all claims.\n",
		},
		"a Pod that runs, and its claim": {
			[]string{worldtest.Node, worldtest.Holder},
			[]string{"pod/holder", "claim/held"},
			"Pod team/holder: it runs on node gpu-0\n\nClaim team/held: it has gpu.example.com/gpu-0/gpu-0, reserved for Pod holder\n  Pod holder is Running: it runs on node gpu-0\n",
		},
		"a claim of a Pod that waits": {
			[]string{worldtest.Node, worldtest.Holder, train},
			[]string{"claim", "two"},
			"Claim team/two: Pod train-0, which uses it, waits for a node: " + lack,
		},
		"a claim that nobody uses": {
			[]string{strings.Split(train, "---")[1]},
			[]string{"resourceclaim/two"},
			"Claim team/two: no Pod uses it, and a claim gets devices only with a Pod that uses it\n",
		},
		"a claim that is being deleted": {
			[]string{strings.Replace(worldtest.Holder, "uid: held}", `uid: held, deletionTimestamp: "2026-01-02T03:00:00Z", finalizers: [resource.kubernetes.io/delete-protection]}`, 1)},
			[]string{"claim/held"},
			"Claim team/held is being deleted: it stays until it is no longer reserved for Pod holder; Pod holder is Running: it runs on node gpu-0\n",
		},
		"a Job": {
			[]string{worldtest.Node, worldtest.Holder, train, job, strings.NewReplacer("train-0", "train-1", "two", "held", "Pending", "Running").Replace(strings.Split(train, "---")[0])},
			[]string{"job/train"},
			"Pod team/train-0 waits for a node (4m): " + lack + "  the scheduler says: Unschedulable: 0/1 nodes are available: 1 cannot allocate all claims.\n1 of 2 Pods of Job train wait.\n",
		},
		"a Job that is suspended": {
			[]string{strings.Replace(job, "parallelism: 2", "parallelism: 2, suspend: true", 1)},
			[]string{"job/train"},
			"Job train has no Pods: it is suspended (spec.suspend), by its user or a queue\n",
		},
		"all of the namespace":              {[]string{worldtest.Node, worldtest.Holder}, nil, "No Pod waits in namespace team.\n"},
		"all of the namespace, one of them": {[]string{worldtest.Node, worldtest.Holder, train}, nil, "Pod team/train-0 waits for a node (4m): " + lack + "  the scheduler says: Unschedulable: 0/1 nodes are available: 1 cannot allocate all claims.\n"},
		"the driver is gone from the node": {
			[]string{strings.Split(worldtest.Node, "---")[0], strings.Replace(worldtest.Holder, "Running", "Pending", 1)},
			[]string{"holder"},
			"Pod team/holder waits for its claims to be prepared: driver gpu.example.com publishes no devices on node gpu-0: is its plugin running there?\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := ask(t, worldtest.Client(t, test.objects...), test.arguments...)
			require.NoError(t, err)
			require.Equal(t, test.want, text)
		})
	}
}

// TestRights says what the user may see of the reason, and which rights are missing.
func TestRights(t *testing.T) {
	t.Parallel()
	client := worldtest.Client(t, worldtest.Node, worldtest.Holder, train)
	worldtest.Forbid(client, "nodes", "resourceslices", "resourceclaims", "pods")
	text, err := ask(t, client, "train-0")
	require.NoError(t, err)
	first, rest, _ := strings.Cut(text, "\n")
	require.Equal(t, "Pod team/train-0 waits for a node (4m): Unschedulable: 0/1 nodes are available: 1 cannot allocate all claims.", first)
	for _, resource := range []string{"nodes", "resourceslices", "resourceclaims in all namespaces"} {
		require.Contains(t, rest, "cannot list "+resource+": ask for the ClusterRole dra-viewer")
	}
	require.NotContains(t, rest, "pods", "they do not matter then")

	text, err = ask(t, client, "pod/train-0", "pod/holder")
	require.NoError(t, err)
	require.Contains(t, text, "\nPod team/holder: it runs on node gpu-0\n")
}

// TestReadsLittle: of Pods on nodes only their nodes matter.
func TestReadsLittle(t *testing.T) {
	t.Parallel()
	client := worldtest.Client(t, worldtest.Node, strings.Replace(worldtest.Holder, "Running", "Pending", 1))
	text, err := ask(t, client, "holder")
	require.NoError(t, err)
	require.Equal(t, "Pod team/holder waits for its claims to be prepared: not prepared yet: held; the kubelet of node gpu-0 has reported no failure\n", text)
	for _, action := range client.Actions() {
		require.NotContains(t, []string{"list nodes", "list pods", "list deviceclasses"}, action.GetVerb()+" "+action.GetResource().Resource)
		require.Contains(t, []string{"get", "list"}, action.GetVerb())
	}
}

// TestObjects are for programs.
func TestObjects(t *testing.T) {
	t.Parallel()
	client := worldtest.Client(t, worldtest.Node, worldtest.Holder, train)
	text, err := ask(t, client, "train-0", "-o", "json")
	require.NoError(t, err)
	var list struct {
		Items []struct {
			Pod, State string
			Requests   []struct {
				Claim, Request, Class string
				DevicesOfClass        int
				Holders               []struct {
					Name    string
					Devices int
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(text), &list))
	require.Len(t, list.Items, 1)
	require.Equal(t, "Unscheduled", list.Items[0].State)
	require.Equal(t, "team/holder", list.Items[0].Requests[0].Holders[0].Name)
	require.Equal(t, 2, list.Items[0].Requests[0].DevicesOfClass)
	text, err = ask(t, client, "-o", "name")
	require.NoError(t, err)
	require.Equal(t, "pod/train-0\n", text)
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
	_, err := ask(t, worldtest.Client(t, train), "train-O")
	require.EqualError(t, err, `there is no Pod "train-O" in namespace team: did you mean train-0?`)
	_, err = ask(t, worldtest.Client(t), "job/train")
	require.ErrorContains(t, err, "get job train: ")
}
