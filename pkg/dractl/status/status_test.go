package status

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kwok-dra/kwok-dra/pkg/dractl/cli"
	"github.com/kwok-dra/kwok-dra/pkg/dractl/output"
)

func TestOverview(t *testing.T) {
	t.Parallel()
	w, err := read(t.Context(), fake.NewClientset(fleet()...))
	require.NoError(t, err)
	var plain, coloured strings.Builder
	require.NoError(t, w.overview(t.Context(), &filter{}).print(&plain, output.Table, false))
	require.Equal(t, `Total of each driver:
DRIVER            NODES   POOLS   INCOMPLETE   DEVICES   UTILIZATION   FREE   ALLOCATED   PREPARED   FAILING   TAINTED
gpu.example.com   2       3       1            6         50%           2      0           2          1         1

Pools with problems:
NODE   DRIVER            POOL   GENERATION   UTILIZATION   FREE   ALLOCATED   PREPARED   FAILING   TAINTED   SLICES
a      gpu.example.com   a      3            75%           1      0           2          1         0         1/1
b      gpu.example.com   b      3            0%            0      0           0          0         1         1/2 incomplete

Pods that wait:
NAMESPACE   POD     NODE   STATE       REASON
default     bare    a      Preparing   claim none has no devices
default     late    a      Preparing   not prepared yet: reported
default     lost    a      Preparing   claim gone does not exist
default     waits   a      Preparing   driver is not registered

Other pools:
NODE       DRIVER            POOL     GENERATION   UTILIZATION   FREE   ALLOCATED   PREPARED   FAILING   TAINTED   SLICES
<shared>   gpu.example.com   fabric   3            0%            1      0           0          0         0         1/1
`, plain.String())
	require.NoError(t, w.overview(t.Context(), &filter{}).print(&coloured, output.Table, true))
	require.Contains(t, coloured.String(), "\x1b[31mb      gpu.example.com")
	require.Equal(t, plain.String(), strings.NewReplacer(red, "", reset, "").Replace(coloured.String()), "colours move nothing")
	require.Equal(t, 1, strings.Count(coloured.String(), red))
}

func TestOverviewAsValue(t *testing.T) {
	t.Parallel()
	w, err := read(t.Context(), fake.NewClientset(fleet()...))
	require.NoError(t, err)
	var out strings.Builder
	c := &command{streams: cli.Streams{Out: &out}, output: output.Flag{Format: output.JSON}}
	require.NoError(t, c.show(t.Context(), w))
	var shown struct {
		Pools []struct {
			Node    string
			Devices map[string]int
		}
		Totals []struct {
			Driver                 string
			Nodes, IncompletePools int
			Devices                map[string]int
		}
		Waiting []Waiting
	}
	require.NoError(t, json.Unmarshal([]byte(out.String()), &shown))
	require.Equal(t, map[string]int{"free": 1, "blocked": 0, "allocated": 0, "prepared": 2, "failing": 1, "tainted": 0}, shown.Pools[0].Devices)
	require.Len(t, shown.Waiting, 4)
	require.Len(t, shown.Totals, 1)
	require.Equal(t, 1, shown.Totals[0].IncompletePools)
	require.Equal(t, map[string]int{"free": 2, "blocked": 0, "allocated": 0, "prepared": 2, "failing": 1, "tainted": 1}, shown.Totals[0].Devices)
}

// TestFilter shows what the user asks for, in natural order.
func TestFilter(t *testing.T) {
	t.Parallel()
	other := slice("node-2", 1, "nic-0")
	other.Name, other.Spec.Driver = "other", "nic.example.com"
	objects := append(fleet(), slice("node-10", 1, "gpu-0"), slice("node-2", 1, "gpu-10", "gpu-2"), other)
	w, err := read(t.Context(), fake.NewClientset(objects...))
	require.NoError(t, err)
	for name, test := range map[string]struct {
		filter                 filter
		pools, totals, waiting []string
	}{
		"all": {
			filter{},
			[]string{"a/gpu.example.com", "b/gpu.example.com", "node-2/gpu.example.com", "node-2/nic.example.com", "node-10/gpu.example.com", "/gpu.example.com"},
			[]string{"gpu.example.com: 4 nodes, 5 pools", "nic.example.com: 1 nodes, 1 pools"},
			[]string{"bare", "late", "lost", "waits"},
		},
		"node": {
			filter{nodes: []string{"node-2", "a"}},
			[]string{"a/gpu.example.com", "node-2/gpu.example.com", "node-2/nic.example.com"},
			[]string{"gpu.example.com: 2 nodes, 2 pools", "nic.example.com: 1 nodes, 1 pools"},
			[]string{"bare", "late", "lost", "waits"},
		},
		"driver": {
			filter{drivers: []string{"nic.example.com"}},
			[]string{"node-2/nic.example.com"},
			[]string{"nic.example.com: 1 nodes, 1 pools"},
			[]string{"bare", "lost"},
		},
		"problems": {
			filter{problems: true},
			[]string{"a/gpu.example.com", "b/gpu.example.com"},
			[]string{"gpu.example.com: 4 nodes, 5 pools", "nic.example.com: 1 nodes, 1 pools"},
			[]string{"bare", "late", "lost", "waits"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shown := w.overview(t.Context(), &test.filter)
			var pools, totals, waiting []string
			for _, pool := range shown.Pools {
				pools = append(pools, pool.Node+"/"+pool.Driver)
			}
			for _, total := range shown.Totals {
				totals = append(totals, fmt.Sprintf("%s: %d nodes, %d pools", total.Driver, total.Nodes, total.Pools))
			}
			for _, pod := range shown.Waiting {
				waiting = append(waiting, pod.Pod)
			}
			require.Equal(t, test.pools, pools)
			require.Equal(t, test.totals, totals)
			require.Equal(t, test.waiting, waiting)
		})
	}
	devices := w.devices("node-2")
	require.Equal(t, []string{"gpu-2", "gpu-10", "nic-0"}, []string{devices[0].Name, devices[1].Name, devices[2].Name})
}

// TestNothing says that there is nothing, and why.
func TestNothing(t *testing.T) {
	t.Parallel()
	healthy := []runtime.Object{slice("a", 1, "gpu-0")}
	for want, test := range map[string]struct {
		objects []runtime.Object
		filter  filter
	}{
		"no driver has published a ResourceSlice\n":                                {nil, filter{}},
		"no pool matches --driver and --node\n":                                    {healthy, filter{drivers: []string{"x"}}},
		"no pool matches --driver gpu.exmple.com: did you mean gpu.example.com?\n": {healthy, filter{drivers: []string{"gpu.exmple.com"}}},
		"no problems\n": {healthy, filter{problems: true}},
		"":              {healthy, filter{}},
	} {
		w, err := read(t.Context(), fake.NewClientset(test.objects...))
		require.NoError(t, err)
		var errOut strings.Builder
		c := &command{streams: cli.Streams{ErrOut: &errOut}, filter: test.filter}
		c.tellNothing(t.Context(), w)
		require.Equal(t, want, errOut.String())
	}
}

// TestNoSuchNode suggests the node that may be meant.
func TestNoSuchNode(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "h100-0"}})
	require.NoError(t, exists(t.Context(), client, "h100-0"))
	require.EqualError(t, exists(t.Context(), client, "h100_0"), `there is no node "h100_0": did you mean h100-0?`)
	require.EqualError(t, exists(t.Context(), client, "other"), `there is no node "other": list them with kubectl get nodes`)
	c := &command{filter: filter{nodes: []string{"h10-0"}}}
	require.ErrorContains(t, c.checkNodes(t.Context(), client, &world{}), "did you mean h100-0?")
}

func TestDevices(t *testing.T) {
	t.Parallel()
	w, err := read(t.Context(), fake.NewClientset(fleet()...))
	require.NoError(t, err)
	var out strings.Builder
	require.NoError(t, printDevices(&out, output.Table, w.devices("a")))
	require.Equal(t, `DEVICE   STATE      PRODUCT   MEMORY   UUID          CLAIM              POD             FAILURE
gpu-0    prepared   H100      80Gi     GPU-a-gpu-0   default/runs       default/runs    <none>
gpu-1    failing    H100      80Gi     GPU-a-gpu-1   default/waits      default/waits   driver is not registered
gpu-2    prepared   H100      80Gi     GPU-a-gpu-2   default/reported   default/late    <none>
gpu-3    free       H100      80Gi     GPU-a-gpu-3   <none>             <none>          <none>
`, out.String())
	out.Reset()
	require.NoError(t, printDevices(&out, output.Wide, w.devices("b")))
	require.Contains(t, out.String(), "xid=79:NoExecute")
	require.Empty(t, w.devices("c"))
}

// TestPath has a claim that a driver reports on, and two Pods, of which one is
// gone.
func TestPath(t *testing.T) {
	t.Parallel()
	objects := fleet()
	scheduled := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: at(3)}
	objects = append(objects, failure("late", "not yet", 3))
	client := fake.NewClientset(objects...)
	late := pod("late", "a", "reported", scheduled, ready)
	_, err := client.CoreV1().Pods("default").Update(t.Context(), late, metav1.UpdateOptions{})
	require.NoError(t, err)
	steps, err := path(t.Context(), client, "default", "reported")
	require.NoError(t, err)
	var out strings.Builder
	require.NoError(t, printSteps(&out, output.Table, steps))
	require.Equal(t, `TIME                   AFTER   OBJECT                           STEP                             DETAIL
2026-01-02T03:04:05Z   0s      claim                            created                          gpu wants 1 of gpu
2026-01-02T03:04:06Z   1s      Pod late                         created                          <none>
2026-01-02T03:04:07Z   2s      claim                            allocated                        gpu=gpu.example.com/a/gpu-2
2026-01-02T03:04:07Z   2s      claim                            reserved                         for pods/late
2026-01-02T03:04:08Z   3s      Pod late                         PodScheduled=True                on node a
2026-01-02T03:04:08Z   3s      Pod late                         FailedPrepareDynamicResources    not yet (2 times)
2026-01-02T03:04:09Z   4s      device gpu.example.com/a/gpu-2   Ready=True                       Prepared
2026-01-02T03:04:11Z   6s      claim                            prepared                         for pods/late
2026-01-02T03:04:11Z   6s      Pod late                         PodReadyToStartContainers=True   <none>
`, out.String())

	require.NoError(t, client.CoreV1().Pods("default").Delete(t.Context(), "late", metav1.DeleteOptions{}))
	steps, err = path(t.Context(), client, "default", "reported")
	require.NoError(t, err)
	require.Contains(t, steps, Step{What: "gone", Object: "Pod late", Detail: "the claim is still reserved for it", rank: rankBound})

	_, err = path(t.Context(), client, "default", "none-such")
	require.EqualError(t, err, `there is no claim "none-such" in namespace default: did you mean none?`)
}

// TestWaitingTogether has one row for Pods of one owner that wait for the same.
func TestWaitingTogether(t *testing.T) {
	t.Parallel()
	var objects []runtime.Object
	for i := range 3 {
		waits := pod(fmt.Sprintf("train-%d", i), "", fmt.Sprintf("train-%d-gpus-x7k2%d", i, i))
		waits.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "train", UID: "job", Controller: new(true)}}
		objects = append(objects, waits)
	}
	w, err := read(t.Context(), fake.NewClientset(objects...))
	require.NoError(t, err)
	var out strings.Builder
	require.NoError(t, w.overview(t.Context(), &filter{}).print(&out, output.Table, false))
	require.Equal(t, `Pods that wait:
NAMESPACE   POD                   NODE     STATE         REASON
default     3 Pods of Job train   <none>   Unscheduled   claim train-0-gpus-x7k20 does not exist
`, out.String())
	require.Len(t, w.overview(t.Context(), &filter{}).Waiting, 3, "programs get each")
	require.Empty(t, w.overview(t.Context(), &filter{nodes: []string{"a"}}).Waiting)
}

// TestPathWritten tells who last wrote the status of devices, and of which time nothing is known.
func TestPathWritten(t *testing.T) {
	t.Parallel()
	shared := claim("shared", "a", []string{"gpu-0"}, "one", "two")
	shared.ManagedFields[0].FieldsV1 = metav1.NewFieldsV1(`{"f:status":{"f:allocation":{"f:devices":{}}}}`)
	shared.ManagedFields = append(shared.ManagedFields, metav1.ManagedFieldsEntry{
		Manager: "kwok-dra", Subresource: "status", Time: new(at(5)), FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:devices":{}}}`),
	})
	runs := pod("two", "a", "shared")
	runs.Status.Phase = corev1.PodRunning
	steps, err := path(t.Context(), fake.NewClientset(shared, pod("one", "a", "shared", ready), runs), "default", "shared")
	require.NoError(t, err)
	var out strings.Builder
	require.NoError(t, printSteps(&out, output.Table, steps))
	require.Regexp(t, `(?m)^2026-01-02T03:04:10Z +5s +claim +devices written +last by kwok-dra$`, out.String())
	require.Regexp(t, `(?m)^2026-01-02T03:04:11Z +6s +claim +prepared +for pods/one$`, out.String())
	require.Regexp(t, `(?m)^<unknown> +<unknown> +claim +prepared +for pods/two, which runs: the Pod does not say when$`, out.String())
	require.Regexp(t, `(?m)^<unknown> +<unknown> +claim +reserved +for pods/one: of several it is not kept when$`, out.String())
}

// screen is what the command writes, safe to read meanwhile.
type screen struct {
	mutex sync.Mutex
	text  strings.Builder
}

func (s *screen) Write(text []byte) (int, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.text.Write(text)
}

func (s *screen) String() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.text.String()
}

// TestFollow shows what changes, and nothing while nothing does.
func TestFollow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		client := fake.NewClientset(fleet()...)
		shown := &screen{}
		c := &command{streams: cli.Streams{Out: shown}, output: output.Flag{Format: output.Table}}
		ended := make(chan error, 1)
		go func() { ended <- c.follow(ctx, client) }()
		afterTicks()
		require.Equal(t, 1, strings.Count(shown.String(), "Total of each driver"))
		afterTicks()
		require.Equal(t, 1, strings.Count(shown.String(), "Total of each driver"), "nothing has changed")
		_, err := client.ResourceV1().ResourceSlices().Create(ctx, slice("c", 1, "gpu-0"), metav1.CreateOptions{})
		require.NoError(t, err)
		afterTicks()
		require.Equal(t, 2, strings.Count(shown.String(), "Total of each driver"))
		require.Contains(t, shown.String(), "\nc ")
		cancel()
		require.NoError(t, <-ended)
	})
}

// TestFollowForbidden ends where the user must not read.
func TestFollowForbidden(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		client.PrependReactor("list", "resourceslices", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "resourceslices"}, "", nil)
		})
		c := &command{streams: cli.Streams{Out: &screen{}}, output: output.Flag{Format: output.Table}}
		require.ErrorContains(t, c.follow(t.Context(), client), "forbidden")
	})
}

// TestNoClaim finds the claim of a Pod by the name of the Pod.
func TestNoClaim(t *testing.T) {
	t.Parallel()
	made := claim("train-gpus-x7k2p", "", nil)
	made.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "train"}}
	client := fake.NewClientset(made)
	for name, hint := range map[string]string{
		"train":            "Pod train has the claim train-gpus-x7k2p",
		"train-gpus-x7k2q": "did you mean train-gpus-x7k2p?",
		"other":            "list them with kubectl get resourceclaims -n default",
	} {
		_, err := path(t.Context(), client, "default", name)
		require.EqualError(t, err, fmt.Sprintf("there is no claim %q in namespace default: %s", name, hint))
	}
}
