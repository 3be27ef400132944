package observe

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	resourceinformers "k8s.io/client-go/informers/resource/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/cached"
	"github.com/kwok-dra/kwok-dra/pkg/config"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
	"github.com/kwok-dra/kwok-dra/pkg/resourceslice/plan"
)

// Slices are the slices that kwok-dra owns.
type Slices struct {
	cached.Informer[*plan.Observed]
}

// byKey indexes slices by what they are of.
const byKey = "key"

func newSlices(client kubernetes.Interface) *Slices {
	indexers := cache.TypedIndexersToIndexers(cache.TypedIndexers[*plan.Observed]{
		byKey: func(slice *plan.Observed) ([]string, error) { return []string{slice.Key().String()}, nil },
	})
	ours := labels.Set{v1alpha1.ManagedByLabel: v1alpha1.ManagedByValue}.String()
	shared := resourceinformers.NewFilteredResourceSliceInformer(client, 0, indexers,
		func(options *metav1.ListOptions) { options.LabelSelector = ours })
	return &Slices{cached.NewInformer[*plan.Observed](shared, cached.Transform(plan.Observe))}
}

// Of are the slices of a node or pool.
func (s *Slices) Of(key plan.Key) []*plan.Observed {
	return s.By(byKey, key.String())
}

// OfDriver reports whether a driver has slices on a node, or in a pool that the node
// shares.
func (s *Slices) OfDriver(set *config.Set, node *corev1.Node, driver string) bool {
	is := func(o *plan.Observed) bool { return o.Driver == driver }
	return slices.ContainsFunc(s.Of(plan.NodeKey(node.Name)), is) || slices.ContainsFunc(set.Shared(), func(t *devices.Template) bool {
		return t.Driver == driver && t.Selects(node) && slices.ContainsFunc(s.Of(plan.SharedKey(t)), is)
	})
}

// HaveDevice reports whether an allocated device is in a slice, of a node or of a pool
// that nodes share.
func (s *Slices) HaveDevice(node string, result *resourcev1.DeviceRequestAllocationResult) bool {
	has := func(o *plan.Observed) bool {
		return o.Driver == result.Driver && o.Pool == result.Pool && slices.Contains(o.Devices.List(), result.Device)
	}
	return slices.ContainsFunc(s.Of(plan.NodeKey(node)), has) ||
		slices.ContainsFunc(s.Of(plan.Key{Driver: result.Driver, Pool: result.Pool}), has)
}
