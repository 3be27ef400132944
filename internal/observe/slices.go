package observe

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	resourceinformers "k8s.io/client-go/informers/resource/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/kwok-dra/kwok-dra/internal/observe/cached"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// Slices are the slices that have kwok-dra's label.
type Slices struct {
	cached.Informer[*facts.Slice]

	// Annotate, if it is set, makes the Note of each slice. Set it before the caches run.
	Annotate func(slice *resourcev1.ResourceSlice) any
}

// byKey indexes slices by their node or shared pool.
const byKey = "key"

func newSlices(client kubernetes.Interface) *Slices {
	indexers := cache.TypedIndexersToIndexers(cache.TypedIndexers[*facts.Slice]{
		byKey: func(slice *facts.Slice) ([]string, error) { return []string{slice.Key().String()}, nil },
	})
	ours := labels.Set{v1alpha1.ManagedByLabel: v1alpha1.ManagedByValue}.String()
	shared := resourceinformers.NewFilteredResourceSliceInformer(client, 0, indexers,
		func(options *metav1.ListOptions) { options.LabelSelector = ours })
	s := &Slices{}
	s.Informer = cached.NewInformer[*facts.Slice](shared, cached.Transform(func(slice *resourcev1.ResourceSlice) *facts.Slice {
		observed := facts.ObserveSlice(slice)
		if s.Annotate != nil {
			observed.Note = s.Annotate(slice)
		}
		return observed
	}))
	return s
}

// Of returns the slices of a node or of a pool that nodes share.
func (s *Slices) Of(key facts.SlicesKey) []*facts.Slice {
	return s.By(byKey, key.String())
}

// HaveDevice reports whether an allocated device is in a slice of the node, or of a pool that
// nodes share.
func (s *Slices) HaveDevice(node string, result *resourcev1.DeviceRequestAllocationResult) bool {
	has := func(o *facts.Slice) bool {
		return o.Driver == result.Driver && o.Pool == result.Pool && slices.Contains(o.Devices.List(), result.Device)
	}
	return slices.ContainsFunc(s.Of(facts.NodeKey(node)), has) ||
		slices.ContainsFunc(s.Of(facts.SlicesKey{Driver: result.Driver, Pool: result.Pool}), has)
}
