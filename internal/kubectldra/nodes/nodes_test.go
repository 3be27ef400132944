package nodes

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/internal/clustertest"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/reading"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/selecting"
)

// ask prints the answer for flags and names.
func ask(t *testing.T, columns, names []string, arguments ...string) string {
	t.Helper()
	c, err := selecting.ReadCluster(t.Context(), reading.NewReaderOf(fake.NewClientset(clustertest.Objects()...)), "team", false)
	require.NoError(t, err)
	command := &cobra.Command{Use: "nodes"}
	q := selecting.NewQuestion(command, reading.NewFlags(), genericiooptions.IOStreams{})
	q.AddDeviceFlagsTo(command)
	require.NoError(t, command.ParseFlags(arguments))
	require.NoError(t, q.Parse())
	a := chooseNodes(c, &q.Flags, names, columns)
	var out strings.Builder
	require.NoError(t, a.Tables.Print(&out, output.Layout{}))
	return a.Headline + "\n" + out.String()
}

// TestNodes has a row for each product of a node, and rows for what nodes share.
func TestNodes(t *testing.T) {
	t.Parallel()
	require.Equal(t, `4 nodes have 10 devices: 1 free, 3 in use, 3 blocked, 2 unhealthy, 1 gone
NODE       READY   DRIVER             PRODUCT             DEVICES   FREE   BLOCKED   IN USE   UNHEALTHY   PODS
<shared>   True    fabric.acme.test   Acme H100           1         0      0         1        0           team/runs
a          True    gpu.acme.test      Acme H100           4         1      0         1        2           team/fails, team/runs
b          False   gpu.acme.test      Acme H100           1         0      1         0        0           <none>
b          False   gpu.acme.test      Acme H100 (parts)   2         0      1         1        0           team/part
c          True    gpu.acme.test      Acme H100           1         0      1         0        0           <none>
d          True    gpu.acme.test      <none>              1         0      0         0        1           team/holds
`, ask(t, nil, nil))
	require.Equal(t, `1 node has 1 device: 1 free
NODE   PRODUCT     DEVICES   FREE   IN USE   PODS     NODEPOOL
a      Acme H100   1         1      0        <none>   h100
`, ask(t, []string{"karpenter.sh/nodepool"}, []string{"a", "b"}, "--state", "free"))
	require.Equal(t, "No device is on node z\n", ask(t, nil, []string{"z"}))
}
