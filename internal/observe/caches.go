package observe

import (
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	resourceinformers "k8s.io/client-go/informers/resource/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/kwok-dra/kwok-dra/internal/observe/cached"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// Caches has one cache for each kind.
type Caches struct {
	Nodes  *Nodes
	Pods   *Pods
	Claims *Claims
	Slices *Slices
}

// New makes the caches; Run fills them.
func New(client kubernetes.Interface, managed *lifecycle.ManagedNodes) *Caches {
	c := &Caches{Nodes: &Nodes{managed: managed}, Pods: &Pods{}, Claims: &Claims{}, Slices: &Slices{}}
	nodes := coreinformers.NewFilteredNodeInformer(client, 0, nil, managed.Tweak)
	c.Nodes.Informer = cached.NewInformer[*Node](nodes, cached.Transform(c.Nodes.observeNode))

	isBound := func(options *metav1.ListOptions) { options.FieldSelector = "spec.nodeName!=" }
	pods := coreinformers.NewFilteredPodInformer(client, metav1.NamespaceAll, 0, cache.TypedIndexersToIndexers(podIndexers), isBound)
	c.Pods.Informer = cached.NewInformer[*Pod](pods, cached.Transform(func(pod *corev1.Pod) *Pod {
		return observePod(pod, c.Pods.Informer.Get(Key(pod).String()))
	}))

	claims := resourceinformers.NewResourceClaimInformer(client, metav1.NamespaceAll, 0, cache.TypedIndexersToIndexers(claimIndexers))
	c.Claims.Informer = cached.NewInformer[*Claim](claims, cached.Transform(observeClaim))

	isOurs := func(options *metav1.ListOptions) {
		options.LabelSelector = labels.Set{v1alpha1.ManagedByLabel: v1alpha1.ManagedByValue}.String()
	}
	published := resourceinformers.NewFilteredResourceSliceInformer(client, 0, cache.TypedIndexersToIndexers(sliceIndexers), isOurs)
	c.Slices.Informer = cached.NewInformer[*facts.Slice](published, cached.Transform(func(slice *resourcev1.ResourceSlice) *facts.Slice {
		observed := facts.ObserveSlice(slice)
		if c.Slices.Annotate != nil {
			observed.Note = c.Slices.Annotate(slice)
		}
		return observed
	}))
	return c
}

// Run watches until ctx ends.
func (c *Caches) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, run := range []func(context.Context){c.Nodes.Run, c.Pods.Run, c.Claims.Run, c.Slices.Run} {
		running.Go(func() { run(ctx) })
	}
	running.Wait()
}

// Synced is done when all caches are complete and each handler has been called with all objects that existed at the
// start. Call it when all handlers are added.
func (c *Caches) Synced() []cache.DoneChecker {
	return slices.Concat(c.Nodes.Synced(), c.Pods.Synced(), c.Claims.Synced(), c.Slices.Synced())
}

// named is an object of the API, or what a cache keeps of it.
type named interface {
	GetNamespace() string
	GetName() string
}

// Key is the namespace and the name of an object.
func Key(object named) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// Slices are the slices that have kwok-dra's label.
type Slices struct {
	cached.Informer[*facts.Slice]

	// Annotate, if it is set, makes the Note of each slice. Set it before the caches run.
	Annotate func(slice *resourcev1.ResourceSlice) any
}

const (
	// byKey indexes slices by their node or shared pool.
	byKey = "key"
	// byPool indexes slices by their pool, but for pools that have the name of their node, as by default: byKey finds them, and
	// an entry for each would take megabytes for a fleet.
	byPool = "pool"
)

var sliceIndexers = cache.TypedIndexers[*facts.Slice]{
	byKey: func(slice *facts.Slice) ([]string, error) { return []string{slice.Key().String()}, nil },
	byPool: func(slice *facts.Slice) ([]string, error) {
		if slice.Pool == slice.Node {
			return nil, nil
		}
		return []string{poolKey(slice.PoolID)}, nil
	},
}

func poolKey(id facts.PoolID) string {
	return facts.SlicesKey{Driver: id.Driver, Pool: id.Pool}.String()
}

// Of returns the slices of a node or of a pool that nodes share.
func (s *Slices) Of(key facts.SlicesKey) []*facts.Slice {
	return s.By(byKey, key.String())
}

// InPool returns the slices of a pool, whichever nodes have them.
func (s *Slices) InPool(id facts.PoolID) []*facts.Slice {
	ofNamesake := slices.DeleteFunc(s.Of(facts.SlicesKey{Node: id.Pool}), func(o *facts.Slice) bool {
		return o.Pool != o.Node || o.Driver != id.Driver
	})
	return slices.Concat(s.By(byPool, poolKey(id)), ofNamesake)
}

// HaveDevice reports whether an allocated device is in a slice of the node, or of a pool that nodes share.
func (s *Slices) HaveDevice(node string, result *resourcev1.DeviceRequestAllocationResult) bool {
	has := func(o *facts.Slice) bool {
		return o.Driver == result.Driver && o.Pool == result.Pool && slices.Contains(o.Devices.List(), result.Device)
	}
	return slices.ContainsFunc(s.Of(facts.SlicesKey{Node: node}), has) ||
		slices.ContainsFunc(s.Of(facts.SlicesKey{Driver: result.Driver, Pool: result.Pool}), has)
}
