package status

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/clusterdevices"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/testing/tabletest"
)

// longNames is a fleet with something of everything, and with names that are as long as they get.
func longNames() []runtime.Object {
	node := tabletest.Node
	gpus := slice(node, 1, "gpu-0", "gpu-1", "gpu-2", "gpu-3")
	for i := range gpus.Spec.Devices {
		device := &gpus.Spec.Devices[i]
		device.Attributes["uuid"] = resourcev1.DeviceAttribute{StringValue: new(fmt.Sprint(tabletest.UUID[:len(tabletest.UUID)-1], i))}
		device.Attributes[driver+"/productName"] = resourcev1.DeviceAttribute{StringValue: new(tabletest.Product)}
		device.Attributes["numaNode"] = resourcev1.DeviceAttribute{IntValue: new(int64(i % 2))}
	}
	gpus.Spec.Devices[3].Taints = []resourcev1.DeviceTaint{{Key: "gpu.nvidia.com/xid", Value: "79", Effect: resourcev1.DeviceTaintEffectNoExecute}}
	nics := slice(node, 2, "nic-0")
	nics.Name, nics.Spec.Driver = "nics", tabletest.Driver
	nics.Spec.Devices[0].Attributes = nil
	trains := claim("train-gpus", node, []string{"gpu-0"}, tabletest.Pod)
	fails := claim("serve-gpus", node, []string{"gpu-1"}, "serve")
	return append(divided("mig"),
		gpus, nics, slice("a", 1, "gpu-0"), trains, fails, claim("whole", "mig", []string{"gpu-0"}), claim("left", "a", []string{"gpu-9"}, "stays"),
		pod(tabletest.Pod, node, "train-gpus", ready), pod("serve", node, "serve-gpus"), pod("stays", "a", "left", ready), pod("lost", "", "none"),
		failure("serve", "cannot prepare claims: NodePrepareResources failed: rpc error: code = Unavailable desc = "+
			"the driver "+tabletest.Driver+" is not registered", 3),
	)
}

// TestTables renders each table of the package.
func TestTables(t *testing.T) {
	w, err := readCluster(t.Context(), fake.NewClientset(longNames()...), "")
	require.NoError(t, err)
	shown := w.newOverview(t.Context(), &filter{}, "numaNode")
	c := func(out io.Writer, format output.Format) *command {
		return &command{streams: cli.Streams{Out: out, ErrOut: io.Discard}, output: output.Flag{Format: format}, attributes: []string{"numaNode"}, name: cli.Name, namespace: "default"}
	}
	prints := func(rows *output.Rows) func(out io.Writer) error {
		return func(out io.Writer) error { return rows.Print(out, output.Table) }
	}
	tables := map[string]func(out io.Writer) error{
		"productTable": prints(shown.productTable()),
		"totalTable":   prints(shown.totalTable()),
		"goneTable":    prints(shown.goneTable()),
		"waitingTable": prints(shown.waitingTable()),
		"poolTable": func(out io.Writer) error {
			c := c(out, output.Table)
			return c.showView(c.viewOverview(t.Context(), w))
		},
		"poolTable-wide": func(out io.Writer) error {
			c := c(out, output.Wide)
			return c.showView(c.viewOverview(t.Context(), w))
		},
		"deviceTable": func(out io.Writer) error {
			c := c(out, output.Table)
			return c.showView(c.viewNode(w, tabletest.Node))
		},
		"deviceTable-parts": func(out io.Writer) error {
			c := c(out, output.Table)
			return c.showView(c.viewNode(w, "mig"))
		},
		"deviceTable-wide": func(out io.Writer) error {
			c := c(out, output.Wide)
			return c.showView(c.viewNode(w, tabletest.Node))
		},
		"stepTable": func(out io.Writer) error {
			s, err := readStory(t.Context(), fake.NewClientset(longNames()...), "default", "train-gpus")
			require.NoError(t, err)
			c := c(out, output.Table)
			return c.showView(viewSteps(s.ListSteps()))
		},
	}
	tabletest.Golden(t, tables, tabletest.Node, tabletest.Driver, tabletest.Pod)
}

// TestChoosing has the flags that choose what is shown.
func TestChoosing(t *testing.T) {
	t.Parallel()
	objects := append(longNames(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"rack": "1"}}})
	client := fake.NewClientset(objects...)
	shows := func(selector string, change func(*command)) string {
		t.Helper()
		w, err := readCluster(t.Context(), client, selector)
		require.NoError(t, err)
		var out strings.Builder
		c := &command{streams: cli.Streams{Out: &out, ErrOut: &out}, name: cli.Name, namespace: "default"}
		change(c)
		require.NoError(t, c.showView(c.viewOverview(t.Context(), w)))
		return out.String()
	}
	require.Contains(t, shows("", func(*command) {}), "\n2 Pods wait: kwok-dractl why\n")
	require.Contains(t, shows("", func(c *command) { c.namespace = "ml" }), "\n2 Pods wait: kwok-dractl why -n default\n")
	require.NotContains(t, shows("", func(c *command) { c.filter.namespace = "ml" }), "Pods wait")
	selected := shows("rack=1", func(*command) {})
	require.Contains(t, selected, "\na ")
	require.NotContains(t, selected, "mig")
	require.Contains(t, shows("rack=2", func(c *command) { c.filter.selector = "rack=2" }), "-l rack=2: no node has these labels")
	tainted := shows("", func(c *command) { require.NoError(t, c.filter.states.Set("tainted")) })
	require.Contains(t, tainted, "gpu-3 tainted: gpu.nvidia.com/xid=79:NoExecute")
	require.NotContains(t, tainted, "Other pools")
	require.Contains(t, shows("rack=1", func(c *command) { require.NoError(t, c.filter.states.Set("blocked")) }), "\nno device is blocked\n")
	bare := shows("", func(c *command) { c.noHeaders = true })
	require.NotContains(t, bare, "Devices by product")
	require.NotContains(t, bare, "why")
	require.ErrorContains(t, new(stateFlag).Set("broken"), "must be of free, blocked, allocated, prepared, failing, tainted, gone")

	w, err := readCluster(t.Context(), client, "")
	require.NoError(t, err)
	c := &command{filter: filter{states: stateFlag{inventory.Allocated}}, name: cli.Name}
	require.Equal(t, "no device of node a is prepared", (&command{filter: filter{states: stateFlag{inventory.Prepared}}}).viewNode(w, "a").nothing)
	allocated := c.viewNode(w, "mig").value.([]clusterdevices.Device)
	require.Len(t, allocated, 1)
	require.Equal(t, "1", clusterdevices.AttributeOf(driver, w.listDevices(tabletest.Node)[2].Attributes, "numaNode"))
}
