package devices

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/internal/clustertest"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/reading"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/selecting"
)

// ask returns the answer for flags and names, an hour after the claims were allocated.
func ask(t *testing.T, columns, names []string, arguments ...string) *selecting.Answer {
	t.Helper()
	c, err := selecting.ReadCluster(t.Context(), reading.NewReaderOf(fake.NewClientset(clustertest.Objects()...)), "team", false)
	require.NoError(t, err)
	command := &cobra.Command{Use: "devices"}
	q := selecting.NewQuestion(command, reading.NewFlags(), genericiooptions.IOStreams{})
	q.AddDeviceFlagsTo(command)
	require.NoError(t, command.ParseFlags(arguments))
	require.NoError(t, q.Parse())
	return chooseDevices(c, &q.Flags, names, columns, clustertest.Start.Add(time.Hour))
}

func printed(t *testing.T, a *selecting.Answer, layout output.Layout) string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, a.Tables.Print(&out, layout))
	return a.Headline + "\n" + out.String()
}

// TestDevices says of each device in which state it is, and who has it since when.
func TestDevices(t *testing.T) {
	t.Parallel()
	require.Equal(t, `10 devices: 1 free, 3 in use, 3 blocked, 2 unhealthy, 1 gone
NODE       DRIVER             POOL     DEVICE           STATE      SINCE    USED     PRODUCT     CLAIM        POD          REASON
<shared>   fabric.acme.test   rail-1   port             prepared   60m      25%      Acme H100   team/share   team/runs    <none>
a          gpu.acme.test      a        gpu-0            prepared   60m      <none>   Acme H100   team/runs    team/runs    <none>
a          gpu.acme.test      a        gpu-1            failing    60m      <none>   Acme H100   team/fails   team/fails   driver gpu.acme.test is not registered
a          gpu.acme.test      a        gpu-2            tainted    60m      <none>   Acme H100   <none>       <none>       acme.test/ecc=double-bit:NoExecute
a          gpu.acme.test      a        gpu-3            free       <none>   <none>   Acme H100   <none>       <none>       <none>
b          gpu.acme.test      b        gpu-0            blocked    <none>   <none>   Acme H100   <none>       <none>       node b is not Ready
b          gpu.acme.test      b          gpu-0-half-0   prepared   60m      <none>   Acme H100   team/part    team/part    node b is not Ready
b          gpu.acme.test      b          gpu-0-half-1   blocked    <none>   <none>   Acme H100   <none>       <none>       node b is not Ready
c          gpu.acme.test      c        gpu-0            blocked    <none>   <none>   Acme H100   <none>       <none>       its pool has 1 of 2 slices
d          gpu.acme.test      d        gpu-9            gone       60m      <none>   <none>      team/lost    team/holds   <none>
`, printed(t, ask(t, nil, nil), output.Layout{}))
	require.Contains(t, printed(t, ask(t, nil, []string{"a/gpu-0"}), output.Layout{Format: output.Wide}), "ACME-a-gpu-0")
	require.Contains(t, printed(t, ask(t, []string{"acme.test/model"}, []string{"a/gpu-0"}), output.Layout{}), "MODEL")
}

// TestSelection selects by names, state, attributes, and the labels of nodes.
func TestSelection(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		names, arguments []string
		want             string
	}{
		"free":                    {nil, []string{"--state", "free"}, "a/gpu-3"},
		"in use of a driver":      {nil, []string{"--state", "in-use", "--driver", clustertest.GPU}, "a/gpu-0 b/gpu-0-half-0"},
		"unhealthy":               {nil, []string{"--state", "unhealthy"}, "a/gpu-1 a/gpu-2 d/gpu-9"},
		"node":                    {nil, []string{"--node", "b"}, "b/gpu-0 b/gpu-0-half-0 b/gpu-0-half-1"},
		"labels":                  {nil, []string{"-l", "zone in (z-c)"}, "c/gpu-0"},
		"attribute":               {nil, []string{"--attribute", "model=*H100", "--attribute", "uuid=ACME-a*", "--state", "free"}, "a/gpu-3"},
		"attribute that is not":   {nil, []string{"--attribute", "uuid!=ACME-*", "--driver", clustertest.GPU}, "d/gpu-9"},
		"capacity":                {nil, []string{"--attribute", "bandwidth"}, "rail-1/port"},
		"device":                  {[]string{"gpu-3"}, nil, "a/gpu-3"},
		"as the scheduler has it": {[]string{"gpu.acme.test/c/gpu-0"}, nil, "c/gpu-0"},
		"UUID":                    {[]string{"ACME-b-gpu-0"}, nil, "b/gpu-0"},
		"pattern":                 {[]string{"gpu-0-half-*"}, nil, "b/gpu-0-half-0 b/gpu-0-half-1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var found []string
			for _, object := range ask(t, nil, test.names, test.arguments...).Objects {
				found = append(found, strings.TrimPrefix(strings.TrimPrefix(object.(Device).ResourceName(), clustertest.GPU+"/"), clustertest.Fabric+"/"))
			}
			require.Equal(t, test.want, strings.Join(found, " "))
		})
	}
}

// TestNothing says why no device is found.
func TestNothing(t *testing.T) {
	t.Parallel()
	require.Equal(t, "No device is named gpu-77", ask(t, nil, []string{"gpu-77"}).Headline)
	require.Equal(t, "No driver gpu.acm.test has published a device: did you mean gpu.acme.test?", ask(t, nil, nil, "--driver", "gpu.acm.test").Headline)
	require.Equal(t, "No device has an attribute colour: kubectl dra devices -o wide shows all", ask(t, nil, nil, "--attribute", "colour=red").Headline)
	require.Equal(t, "No device is selected", ask(t, nil, nil, "--node", "a", "--state", "gone").Headline)
}

// TestFields has what programs read.
func TestFields(t *testing.T) {
	t.Parallel()
	encoded, err := json.Marshal(ask(t, nil, []string{"a/gpu-0"}).Objects[0])
	require.NoError(t, err)
	require.JSONEq(t, `{
		"node": "a", "driver": "gpu.acme.test", "pool": "a", "device": "gpu-0", "state": "prepared", "since": "2026-03-04T05:06:07Z",
		"uuid": "ACME-a-gpu-0", "product": "Acme H100", "attributes": {"model": "Acme H100", "uuid": "ACME-a-gpu-0"},
		"claims": [{"namespace": "team", "name": "runs", "pods": ["runs"], "prepared": true}]
	}`, string(encoded))
}
