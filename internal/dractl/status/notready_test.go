package status

import (
	"context"
	"strings"
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

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/follow"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/testing/runtest"
)

func nodeWithReady(name string, status corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"rack": name}},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}},
	}
}

// deadNode is a cluster with a node that is not ready, which has a device in use and one that no claim has.
func deadNode() []runtime.Object {
	return []runtime.Object{
		slice("dead", 1, "gpu-0", "gpu-1"), slice("n", 1, "gpu-0"), claim("runs", "dead", []string{"gpu-0"}, "runs"), pod("runs", "dead", "runs", ready),
		nodeWithReady("dead", corev1.ConditionUnknown), nodeWithReady("n", corev1.ConditionTrue),
	}
}

// TestNodeNotReady counts no device of a dead node as free, and names the node as a problem.
func TestNodeNotReady(t *testing.T) {
	t.Parallel()
	for _, selector := range []string{"", "rack in (dead,n)"} {
		w, err := readCluster(t.Context(), fake.NewClientset(deadNode()...), selector)
		require.NoError(t, err)
		var out strings.Builder
		require.NoError(t, w.newOverview(t.Context(), &filter{problems: true}).listTables(output.Table).Print(&out, output.Layout{}))
		require.Equal(t, `Devices by product:
PRODUCT   NODES   DEVICES   USED   FREE   BLOCKED   PREPARED
H100      2       3         33%    1      1         1

Pools with problems:
NODE   USED   FREE   BLOCKED   PREPARED   PROBLEM
dead   50%    0      1         1          node dead is not Ready
`, out.String())
		out.Reset()
		require.NoError(t, deviceTable(w.listDevices("dead"), nil).Print(&out, output.Table))
		require.Equal(t, `DEVICE   STATE      PRODUCT   MEMORY   UUID             CLAIM          POD            REASON
gpu-0    prepared   H100      80Gi     GPU-dead-gpu-0   default/runs   default/runs   node dead is not Ready
gpu-1    blocked    H100      80Gi     GPU-dead-gpu-1   <none>         <none>         node dead is not Ready
`, out.String())
	}
}

// TestFollowNodeReadiness shows how a node dies and comes back.
func TestFollowNodeReadiness(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]func(*command, *fake.Clientset) (*follow.Live, func(context.Context) *view){
		"cluster": ofCluster,
		"node": func(c *command, client *fake.Clientset) (*follow.Live, func(context.Context) *view) {
			l := follow.NewNode(client, "n")
			return l, func(context.Context) *view { return c.viewNode(liveWorld(l, false), "n") }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := watch(t, output.Table, of, deadNode()...)
				set := func(status corev1.ConditionStatus) {
					_, err := f.CoreV1().Nodes().UpdateStatus(t.Context(), nodeWithReady("n", status), metav1.UpdateOptions{})
					require.NoError(t, err)
					afterTicks()
				}
				views := func() int {
					return strings.Count(f.out.String(), "UUID") + strings.Count(f.out.String(), "Devices by product")
				}
				require.NotContains(t, f.out.String(), "node n is not Ready")
				set(corev1.ConditionFalse)
				require.Contains(t, f.out.String(), "node n is not Ready")
				require.Equal(t, 2, views())
				set(corev1.ConditionUnknown)
				require.Equal(t, 2, views(), "nothing that is shown has changed")
				set(corev1.ConditionTrue)
				require.Equal(t, 3, views())
				f.end(t)
			})
		})
	}
}

// TestNodesForbidden shows what can be seen, and says what cannot.
func TestNodesForbidden(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(deadNode()...)
		client.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", nil)
		})
		w, err := readCluster(t.Context(), client, "")
		require.NoError(t, err)
		require.Contains(t, w.Unseen, "Nodes are not seen, and all are shown as Ready: ")
		require.Len(t, w.newOverview(t.Context(), &filter{}).Pools, 2)
		_, err = readCluster(t.Context(), client, "rack=n")
		require.ErrorContains(t, err, "list nodes: ")

		out, told := &runtest.Transcript{}, &runtest.Transcript{}
		c := &command{streams: cli.Streams{Out: out, ErrOut: told}, output: output.Flag{Format: output.Table}}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		l, look := ofCluster(c, client)
		go func() { ended <- c.followChanges(ctx, l, look) }()
		afterTicks()
		require.Contains(t, out.String(), "Devices by product")
		require.Contains(t, told.String(), "Nodes are not seen")
		cancel()
		require.NoError(t, <-ended)
	})
}
