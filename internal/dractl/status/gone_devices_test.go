package status

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
)

// maintenance is a rule that taints a device of pool a.
func maintenance() *resourcev1.DeviceTaintRule {
	return &resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: "maintenance"}, Spec: resourcev1.DeviceTaintRuleSpec{
		DeviceSelector: &resourcev1.DeviceTaintSelector{Pool: new("a"), Device: new("gpu-3")},
		Taint:          resourcev1.DeviceTaint{Key: "down", Effect: resourcev1.DeviceTaintEffectNoExecute},
	}}
}

// TestTaintRule: a device that a DeviceTaintRule taints is not free, and the rule is named.
func TestTaintRule(t *testing.T) {
	t.Parallel()
	w, err := readCluster(t.Context(), fake.NewClientset(append(fleet(), maintenance())...), "")
	require.NoError(t, err)
	total := w.newOverview(t.Context(), &filter{}).Totals[0]
	require.Equal(t, []int{1, 2}, []int{total.States[inventory.Free], total.States[inventory.Tainted]})
	last := w.listDevices("a")[3]
	require.Equal(t, inventory.Tainted, last.State)
	require.Equal(t, "maintenance", last.Taints[0].Rule)
	var out strings.Builder
	require.NoError(t, (&command{}).viewNode(w, "a").tables.Print(&out, output.Layout{Format: output.Wide}))
	require.Contains(t, out.String(), "down=:NoExecute (DeviceTaintRule maintenance)")
}

// TestGone: a device of a claim that no slice publishes is listed with its claim and Pod, and
// is not among the published devices.
func TestGone(t *testing.T) {
	t.Parallel()
	objects := append(fleet(), claim("left", "a", []string{"gpu-9"}, "stays"), pod("stays", "a", "left", ready))
	w, err := readCluster(t.Context(), fake.NewClientset(objects...), "")
	require.NoError(t, err)
	shown := w.newOverview(t.Context(), &filter{problems: true})
	require.Equal(t, 1, shown.Totals[0].Gone)
	var out strings.Builder
	require.NoError(t, shown.listTables(output.Wide).Print(&out, output.Layout{}))
	require.Contains(t, out.String(), `TAINTED   GONE
gpu.example.com   2       3       1            6 `)
	require.Contains(t, out.String(), `Devices of claims that no slice publishes any more:
NODE   DRIVER            POOL   DEVICE   CLAIM          POD
a      gpu.example.com   a      gpu-9    default/left   default/stays
`)
	devices := w.listDevices("a")
	require.Len(t, devices, 5)
	require.Equal(t, inventory.Gone, devices[4].State)
	encoded, err := json.Marshal(devices[4])
	require.NoError(t, err)
	require.Contains(t, string(encoded), `"state":"gone"`)
	require.Empty(t, w.newOverview(t.Context(), &filter{nodes: []string{"b"}}).Gone)
}

// TestUnseenTaintRules: without the right to list rules the command says once that it does not
// see them.
func TestUnseenTaintRules(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset(append(fleet(), maintenance())...)
	client.PrependReactor("list", "devicetaintrules", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(resourcev1.Resource("devicetaintrules"), "", nil)
	})
	w, err := readCluster(t.Context(), client, "")
	require.NoError(t, err)
	var out, told strings.Builder
	c := &command{streams: cli.Streams{Out: &out, ErrOut: &told}, output: output.Flag{Format: output.JSON}}
	for range 2 {
		require.NoError(t, c.showView(c.viewOverview(t.Context(), w)))
	}
	require.Equal(t, 1, strings.Count(told.String(), "DeviceTaintRules are not seen"))
	require.Contains(t, out.String(), `"unseen": "DeviceTaintRules are not seen`)
}
