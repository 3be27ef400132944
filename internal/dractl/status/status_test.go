package status

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
)

func TestOverview(t *testing.T) {
	t.Parallel()
	w, err := readCluster(t.Context(), fake.NewClientset(fleet()...), "")
	require.NoError(t, err)
	var plain, coloured strings.Builder
	require.NoError(t, w.newOverview(t.Context(), &filter{}).listTables(output.Table).Print(&plain, output.Layout{}))
	require.Equal(t, `Devices by product:
PRODUCT   NODES   DEVICES   USED   FREE   PREPARED   FAILING   TAINTED
H100      2       6         50%    2      2          1         1

Pools with problems:
NODE   POOL   USED   FREE   PREPARED   FAILING   TAINTED   PROBLEM
a      a      75%    1      2          1         0         gpu-1 failing: driver is not registered
b      b      0%     0      0          0         1         incomplete: 1 of 2 slices; gpu-0 tainted: xid=79:NoExecute

Pods that wait:
NAMESPACE   POD     NODE   STATE       REASON
default     bare    a      Preparing   claim none has no devices: the Pod came with spec.nodeName, past the scheduler, which allocates them
default     late    a      Preparing   not prepared yet: reported; the kubelet of node a has reported no failure
default     lost    a      Preparing   claim gone does not exist
default     waits   a      Preparing   driver is not registered

Other pools:
NODE       POOL     USED   FREE   PREPARED   FAILING   TAINTED
<shared>   fabric   0%     1      0          0         0
`, plain.String())
	require.NoError(t, w.newOverview(t.Context(), &filter{}).listTables(output.Table).Print(&coloured, output.Layout{Colours: true}))
	require.Contains(t, coloured.String(), "\x1b[31mb      b ")
	require.Equal(t, plain.String(), strings.NewReplacer("\x1b[31m", "", "\x1b[0m", "").Replace(coloured.String()), "colours move nothing")
	require.Equal(t, 1, strings.Count(coloured.String(), "\x1b[31m"))
}

func TestOverviewAsValue(t *testing.T) {
	t.Parallel()
	w, err := readCluster(t.Context(), fake.NewClientset(fleet()...), "")
	require.NoError(t, err)
	var out strings.Builder
	c := &command{streams: cli.Streams{Out: &out}, output: output.Flag{Format: output.JSON}}
	require.NoError(t, c.showView(c.viewOverview(t.Context(), w)))
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
	w, err := readCluster(t.Context(), fake.NewClientset(objects...), "")
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
			shown := w.newOverview(t.Context(), &test.filter)
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
	devices := w.listDevices("node-2")
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
		"no pool matches --driver, --node and -l\n":                                {healthy, filter{drivers: []string{"x"}}},
		"no pool matches --driver gpu.exmple.com: did you mean gpu.example.com?\n": {healthy, filter{drivers: []string{"gpu.exmple.com"}}},
		"no problems\n": {healthy, filter{problems: true}},
		"":              {healthy, filter{}},
	} {
		w, err := readCluster(t.Context(), fake.NewClientset(test.objects...), "")
		require.NoError(t, err)
		var errOut strings.Builder
		c := &command{streams: cli.Streams{ErrOut: &errOut}, filter: test.filter}
		c.tellUser(c.viewOverview(t.Context(), w))
		require.Equal(t, want, errOut.String())
	}
}

// TestNoSuchNode suggests the node that may be meant.
func TestNoSuchNode(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "h100-0"}})
	require.NoError(t, checkNodeExists(t.Context(), client, "h100-0"))
	require.EqualError(t, checkNodeExists(t.Context(), client, "h100_0"), `there is no node "h100_0": did you mean h100-0?`)
	require.EqualError(t, checkNodeExists(t.Context(), client, "other"), `there is no node "other": list them with kubectl get nodes`)
	c := &command{filter: filter{nodes: []string{"h10-0"}}}
	require.ErrorContains(t, c.checkNodes(t.Context(), client, &world{}), "did you mean h100-0?")
}

func TestDevices(t *testing.T) {
	t.Parallel()
	w, err := readCluster(t.Context(), fake.NewClientset(fleet()...), "")
	require.NoError(t, err)
	var out strings.Builder
	require.NoError(t, deviceTable(w.listDevices("a"), nil).Print(&out, output.Table))
	require.Equal(t, `DEVICE   STATE      PRODUCT   MEMORY   UUID          CLAIM              POD             REASON
gpu-0    prepared   H100      80Gi     GPU-a-gpu-0   default/runs       default/runs    <none>
gpu-1    failing    H100      80Gi     GPU-a-gpu-1   default/waits      default/waits   driver is not registered
gpu-2    prepared   H100      80Gi     GPU-a-gpu-2   default/reported   default/late    <none>
gpu-3    free       H100      80Gi     GPU-a-gpu-3   <none>             <none>          <none>
`, out.String())
	out.Reset()
	require.NoError(t, deviceTable(w.listDevices("b"), nil).Print(&out, output.Wide))
	require.Contains(t, out.String(), "xid=79:NoExecute")
	require.Empty(t, w.listDevices("c"))
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
	w, err := readCluster(t.Context(), fake.NewClientset(objects...), "")
	require.NoError(t, err)
	var out strings.Builder
	require.NoError(t, w.newOverview(t.Context(), &filter{}).listTables(output.Table).Print(&out, output.Layout{}))
	require.Equal(t, `Pods that wait:
NAMESPACE   POD                   NODE     STATE         REASON
default     3 Pods of Job train   <none>   Unscheduled   claim train-0-gpus-x7k20 does not exist
`, out.String())
	require.Len(t, w.newOverview(t.Context(), &filter{}).Waiting, 3, "programs get each")
	require.Empty(t, w.newOverview(t.Context(), &filter{nodes: []string{"a"}}).Waiting)
}
