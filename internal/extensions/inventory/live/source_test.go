package live

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/observe"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/internal/testing/apitest"
	"github.com/kwok-dra/kwok-dra/internal/testing/runtest"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// nothing is prepared, and there are no DeviceTaintRules.
type nothing struct{}

func (nothing) IsPrepared(types.UID) bool                                    { return false }
func (nothing) FailureOf([]resourcev1.ResourceClaimConsumerReference) string { return "" }
func (nothing) Rules() (rules []inventory.TaintRule, unseen string)          { return nil, "" }
func (nothing) Changes() uint64                                              { return 0 }

// inBubble runs a test with caches of the objects of a server.
func inBubble(t *testing.T, objects []runtime.Object, test func(t *testing.T, server *apitest.Server, source *inventory.Source)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		managed := &lifecycle.ManagedNodes{}
		require.NoError(t, managed.Complete())
		server := apitest.New(objects...)
		caches := observe.New(server, managed)
		source := NewSource(Options{Config: config.NewStore("test"), Caches: caches, Preparer: nothing{}, TaintRules: nothing{}})
		runtest.UntilEnd(runtest.QuietContext(t), t, caches.Run)
		synctest.Wait()
		test(t, server, source)
	})
}

func fakeNode(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name), Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}}}
}

// sliceOf is the slice of a node, or of a pool that nodes share.
func sliceOf(node string, devices ...resourcev1.Device) *resourcev1.ResourceSlice {
	slice := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "s" + node, UID: types.UID("uid-of-s" + node), Labels: map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedByValue}},
		Spec:       resourcev1.ResourceSliceSpec{Driver: "d", Pool: resourcev1.ResourcePool{Name: "p", Generation: 2, ResourceSliceCount: 1}, Devices: devices},
	}
	if node != "" {
		slice.Spec.NodeName = &node
	}
	return slice
}

// TestSlices has what an inventory taken of whole slices has.
func TestSlices(t *testing.T) {
	added := metav1.Unix(9, 0)
	gpu := resourcev1.Device{
		Name:       "gpu",
		Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"model": {StringValue: new("X")}},
		Capacity:   map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("80Gi")}},
		Taints: []resourcev1.DeviceTaint{
			{Key: "k", Value: "v", Effect: resourcev1.DeviceTaintEffectNoExecute, TimeAdded: &added},
			{Key: "a", Effect: resourcev1.DeviceTaintEffectNoSchedule, TimeAdded: &added},
			{Key: "k", Effect: resourcev1.DeviceTaintEffectNone, TimeAdded: &added},
		},
		AllowMultipleAllocations: new(true),
	}
	own, shared, stranger := sliceOf("n", gpu, resourcev1.Device{Name: "plain"}), sliceOf("", resourcev1.Device{Name: "nic"}), fakeNode("real")
	stranger.Annotations = nil
	inBubble(t, []runtime.Object{fakeNode("n"), fakeNode("m"), stranger, own, shared}, func(t *testing.T, _ *apitest.Server, source *inventory.Source) {
		require.ElementsMatch(t, []string{"n", "m"}, source.Nodes())
		require.ElementsMatch(t, []inventory.Slice{{
			Node: "n", Driver: "d", Pool: "p", Name: "sn", Generation: 2, Count: 1,
			Devices: facts.NamesOf(own.Spec.Devices), Sharing: inventory.SharingOf(&own.Spec), Facts: inventory.FactsOf(&own.Spec),
			Taints: map[string][]inventory.Taint{"gpu": {
				{Key: "a", Effect: resourcev1.DeviceTaintEffectNoSchedule, TimeAdded: added.Time},
				{Key: "k", Effect: resourcev1.DeviceTaintEffectNoExecute, Value: "v", TimeAdded: added.Time},
				{Key: "k", Effect: resourcev1.DeviceTaintEffectNone, TimeAdded: added.Time},
			}},
		}, {
			Driver: "d", Pool: "p", Name: "s", Generation: 2, Count: 1, Devices: facts.NamesOf(shared.Spec.Devices),
		}}, source.Slices())
	})
}

// TestNodeReadiness follows the readiness of nodes, and forgets that of a node that has gone.
func TestNodeReadiness(t *testing.T) {
	inBubble(t, []runtime.Object{fakeNode("n"), sliceOf("n", resourcev1.Device{Name: "gpu"})}, func(t *testing.T, server *apitest.Server, source *inventory.Source) {
		state := func() inventory.State {
			synctest.Wait()
			item := source.Take().Items[0]
			require.Equal(t, item.NotReady, !source.IsNodeReady("n"))
			return item.Pools[0].Devices[0].State
		}
		setReady := func(status corev1.ConditionStatus) {
			apitest.Edit(server, "", "n", func(node *corev1.Node) {
				node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
			})
		}
		require.Equal(t, inventory.Free, state())
		setReady(corev1.ConditionUnknown)
		require.Equal(t, inventory.Blocked, state())
		setReady(corev1.ConditionTrue)
		require.Equal(t, inventory.Free, state())
		setReady(corev1.ConditionFalse)
		require.Equal(t, inventory.Blocked, state())
		server.Remove(fakeNode("n"))
		require.Equal(t, inventory.Free, state())
	})
}

// TestChanges: what changes an inventory is counted, so that it need not be taken to find out.
func TestChanges(t *testing.T) {
	inBubble(t, []runtime.Object{fakeNode("n"), sliceOf("n", resourcev1.Device{Name: "gpu"})}, func(t *testing.T, server *apitest.Server, source *inventory.Source) {
		before := source.Changes()
		changed := func(what string) {
			t.Helper()
			synctest.Wait()
			now := source.Changes()
			require.Greater(t, now, before, what)
			before = now
		}
		server.Add(fakeNode("m"))
		changed("a node comes")
		apitest.Edit(server, "", "m", func(node *corev1.Node) { node.Annotations = nil })
		changed("a node is no longer fake")
		server.Remove(fakeNode("m"))
		changed("a node goes")
		apitest.Edit(server, "", "sn", func(slice *resourcev1.ResourceSlice) { slice.Spec.Devices[0].Name = "other" })
		changed("a slice changes")
		server.Remove(sliceOf("n"))
		changed("a slice goes")
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, before, source.Changes(), "time changes nothing")
	})
}
