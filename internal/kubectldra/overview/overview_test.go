package overview

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/internal/clustertest"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/reading"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/selecting"
)

// ask returns the answer about objects for flags.
func ask(t *testing.T, objects []runtime.Object, labels []string, arguments ...string) *selecting.Answer {
	t.Helper()
	c, err := selecting.ReadCluster(t.Context(), reading.NewReaderOf(fake.NewClientset(objects...)), "team", true)
	require.NoError(t, err)
	command := &cobra.Command{Use: "overview"}
	q := selecting.NewQuestion(command, reading.NewFlags(), genericiooptions.IOStreams{})
	require.NoError(t, command.ParseFlags(arguments))
	require.NoError(t, q.Parse())
	return summarizeDevices(c, &q.Flags, labels)
}

func printed(t *testing.T, a *selecting.Answer) string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, a.Tables.Print(&out, output.Layout{}))
	return a.Headline + "\n" + out.String()
}

// TestOverview counts devices, and has the problems in the order in which they matter.
func TestOverview(t *testing.T) {
	t.Parallel()
	require.Equal(t, `10 devices: 1 free, 3 in use, 3 blocked, 2 unhealthy, 1 gone. 6 problems
Devices:
DRIVER             NODE POOL   PRODUCT             NODES      DEVICES   USED     FREE   BLOCKED   IN USE   UNHEALTHY
fabric.acme.test   <none>      Acme H100           <shared>   1         25%      0      0         1        0
gpu.acme.test      h100        Acme H100           2          5         40%      1      1         1        2
gpu.acme.test      mig         Acme H100           1          1         50%      0      1         0        0
gpu.acme.test      mig         Acme H100 (parts)   1          2         <none>   0      1         1        0

Problems, the most important first:
PROBLEM                                                                                      DEVICES   WHERE    PODS         MORE
failing: driver gpu.acme.test is not registered                                              1         a        team/fails   kubectl dra why pod/fails -n team
Pods with claims are not scheduled                                                           <none>    <none>   team/waits   kubectl dra why -A
claims have devices that gpu.acme.test publishes no more                                     1         d        team/holds   kubectl dra devices --state gone
the node is not Ready                                                                        2         b        team/part    kubectl describe node b
the pool of gpu.acme.test is incomplete, and the scheduler gives none of it: 1 of 2 slices   1         c        <none>       kubectl dra check
tainted: acme.test/ecc=double-bit:NoExecute                                                  1         a        <none>       kubectl dra devices --state tainted
`, printed(t, ask(t, clustertest.Objects(), nil)))
}

// TestGroups counts devices by the labels that the user names, and by no label where nodes have none.
func TestGroups(t *testing.T) {
	t.Parallel()
	require.Contains(t, printed(t, ask(t, clustertest.Objects(), []string{"zone", "x/other"}, "-l", "zone=z-c")), `Devices:
DRIVER          ZONE   OTHER    PRODUCT     NODES   DEVICES   USED   FREE   BLOCKED   IN USE   UNHEALTHY
gpu.acme.test   z-c    <none>   Acme H100   1       1         0%     0      1         0        0
`)
	require.Equal(t, `1 device: 1 free. No problems
Devices:
DRIVER          PRODUCT     NODES   DEVICES   USED   FREE   IN USE   UNHEALTHY
gpu.acme.test   Acme H100   1       1         0%     1      0        0
`, printed(t, ask(t, []runtime.Object{clustertest.Slice("a", clustertest.GPU, "gpu-0")}, nil)))
	require.Equal(t, "No DRA driver has published a device: there is no ResourceSlice\n", printed(t, ask(t, nil, nil)))
}

// TestTogether has one problem for all nodes that have the same.
func TestTogether(t *testing.T) {
	t.Parallel()
	var objects []runtime.Object
	for _, node := range []string{"n-10", "n-9", "n-1", "n-2"} {
		slice := clustertest.Slice(node, clustertest.GPU, "gpu-0", "gpu-1")
		slice.Spec.Pool.ResourceSliceCount = 2
		objects = append(objects, slice)
	}
	a := ask(t, objects, nil)
	require.Contains(t, a.Headline, ". 1 problem")
	require.Contains(t, printed(t, a), "   8         n-1, n-2 and 2 more   <none> ")
}

// TestFields has what programs read.
func TestFields(t *testing.T) {
	t.Parallel()
	a := ask(t, clustertest.Objects(), nil, "--node", "a")
	total, err := json.Marshal(a.Objects[0])
	require.NoError(t, err)
	require.JSONEq(t, `{
		"type": "total", "nodePool": ["h100"], "driver": "gpu.acme.test", "product": "Acme H100", "nodes": 1, "usage": {"used": 2, "total": 4},
		"devices": {"free": 1, "blocked": 0, "allocated": 0, "prepared": 1, "failing": 1, "tainted": 1}
	}`, string(total))
	problem, err := json.Marshal(a.Objects[1])
	require.NoError(t, err)
	require.JSONEq(t, `{
		"type": "problem", "problem": "failing: driver gpu.acme.test is not registered", "devices": 1, "where": ["a"], "pods": ["team/fails"],
		"next": "kubectl dra why pod/fails -n team"
	}`, string(problem))
}
