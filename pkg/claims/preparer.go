package claims

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/kwok-dra/kwok-dra/pkg/cached"
	"github.com/kwok-dra/kwok-dra/pkg/config"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/loop"
	"github.com/kwok-dra/kwok-dra/pkg/shard"
)

// Preparer prepares and unprepares the claims of Pods on fake nodes.
type Preparer struct {
	client          kubernetes.Interface
	config          *config.Store
	nodes           *lifecycle.Nodes
	owner           *shard.Owner
	published       func(node, driver string) bool
	publishedDevice func(node string, result *resourcev1.DeviceRequestAllocationResult) bool
	events          record.EventBroadcaster

	pods      cache.TypedSharedIndexInformer[*observedPod]
	claims    cache.TypedSharedIndexInformer[*observedClaim]
	synced    []cache.DoneChecker
	podLoop   *loop.Loop[types.NamespacedName]
	claimLoop *loop.Loop[types.NamespacedName]
	states    *states
	metrics   *metrics
	health    healthFields
	changes   atomic.Uint64
}

// Options are what a Preparer works with. All but Owner are required.
type Options struct {
	Client kubernetes.Interface
	Config *config.Store
	// Nodes and Owner are run by the caller.
	Nodes *lifecycle.Nodes
	Owner *shard.Owner
	// Published reports whether a driver has a pool on a node by what the cache says.
	Published func(node, driver string) bool
	// PublishedDevice reports whether an allocated device is one of those slices.
	PublishedDevice func(node string, result *resourcev1.DeviceRequestAllocationResult) bool
	Events          record.EventBroadcaster
}

// New makes a Preparer; Run starts it.
func New(o Options) (*Preparer, error) {
	p := &Preparer{
		client:          o.Client,
		config:          o.Config,
		nodes:           o.Nodes,
		owner:           o.Owner,
		published:       o.Published,
		publishedDevice: o.PublishedDevice,
		events:          o.Events,
		pods:            newPodInformer(o.Client),
		claims:          newClaimInformer(o.Client),
		states:          newStates(),
	}
	p.podLoop = loop.New("pods", p.reconcilePod)
	p.claimLoop = loop.New("claims", p.reconcileClaim)
	p.metrics = newMetrics(p.states.prepared)
	o.Config.OnChange(p.enqueueAll)
	o.Owner.OnChange(p.take, p.enqueueAll)
	return p, p.addHandlers()
}

// Metrics is the collector of the Preparer's metrics.
func (p *Preparer) Metrics() prometheus.Collector {
	return p.metrics
}

// Synced are done when the caches are complete.
func (p *Preparer) Synced() []cache.DoneChecker {
	return p.synced
}

// Run prepares with that many workers for Pods, and as many for claims, until
// ctx ends, and returns when all that it started has stopped. It begins when its
// caches are complete, and those of others: what is not known to be published would
// be asked for, Pod by Pod.
func (p *Preparer) Run(ctx context.Context, workers int, others ...cache.DoneChecker) {
	var running sync.WaitGroup
	running.Go(func() { p.pods.RunWithContext(ctx) })
	running.Go(func() { p.claims.RunWithContext(ctx) })
	cache.WaitFor(ctx, "", slices.Concat(p.synced, others)...)
	running.Go(func() { p.claimLoop.Run(ctx, workers) })
	p.podLoop.Run(ctx, workers) // also where ctx has ended, to shut the queue down
	running.Wait()
}

// attempt is one look at a Pod.
type attempt struct {
	key    types.NamespacedName
	set    *config.Set
	node   *corev1.Node
	state  *podState
	lookup *devices.Lookup
	// published reports whether a device of the node is one that kwok-dra publishes.
	published func(node string, result *resourcev1.DeviceRequestAllocationResult) bool

	pod    *corev1.Pod
	object *lifecycle.Object
}

// see goes on with a newer version of the Pod.
func (a *attempt) see(pod *corev1.Pod) {
	a.pod, a.object = pod, lifecycle.PodObject(pod)
}

// reconcilePod does for a Pod all that can be done now.
func (p *Preparer) reconcilePod(ctx context.Context, key types.NamespacedName) error {
	pod := p.pod(key)
	if pod == nil {
		p.release(p.states.forgetPod(key))
		return nil
	}
	state, former := p.states.pod(key, pod.UID)
	p.release(former)
	set, node := p.config.Current(), p.nodes.Get(pod.Spec.NodeName)
	if node == nil {
		p.release(state)
	}
	if set == nil || node == nil || cached.Older(pod.ResourceVersion, state.written) {
		return nil
	}
	a := &attempt{key: key, set: set, node: node, state: state, lookup: devices.NewLookup(set.Templates, node), published: p.publishedDevice}
	a.see(pod)
	return p.report(ctx, a, p.advance(ctx, a))
}

func (p *Preparer) advance(ctx context.Context, a *attempt) error {
	claims := p.knownClaims(a.pod)
	a.state.followed = !p.actsFor(a.node, claims)
	switch {
	case a.state.followed:
		p.follow(a, claims)
		return nil
	case ending(a.pod):
		return p.unprepare(ctx, a)
	case readyToStart(a.pod) == corev1.ConditionTrue:
		p.use(a, claims)
		return p.showHealth(ctx, a)
	}
	return p.prepare(ctx, a)
}

// pod returns a Pod with claims, or nil.
func (p *Preparer) pod(key types.NamespacedName) *corev1.Pod {
	if observed := p.observed(key); observed != nil {
		return observed.pod()
	}
	return nil
}

// observed returns what the cache has of a Pod, or nil.
func (p *Preparer) observed(key types.NamespacedName) *observedPod {
	return cached.Get[observedPod](p.pods.GetStore(), key.String())
}

// claim returns a claim from the cache.
func (p *Preparer) claim(key types.NamespacedName) (*resourcev1.ResourceClaim, error) {
	if observed := p.observedClaim(key); observed != nil {
		return observed.Decode(), nil
	}
	return nil, apierrors.NewNotFound(resourcev1.Resource("resourceclaims"), key.Name)
}

// observedClaim returns what the cache has of a claim, or nil.
func (p *Preparer) observedClaim(key types.NamespacedName) *observedClaim {
	return cached.Get[observedClaim](p.claims.GetStore(), key.String())
}

// cached looks at the caches, live asks the API server. A failure by the caches
// is none yet: they may lag behind.
func (p *Preparer) cached(a *attempt) view {
	return view{
		claim: func(name string) (*resourcev1.ResourceClaim, error) {
			return p.claim(types.NamespacedName{Namespace: a.key.Namespace, Name: name})
		},
		registered: func(driver string) (bool, error) {
			return p.registered(a, driver, func() (bool, error) { return p.published(a.node.Name, driver), nil })
		},
	}
}

func (p *Preparer) live(ctx context.Context, a *attempt) view {
	return view{
		claim: func(name string) (*resourcev1.ResourceClaim, error) {
			claim, err := p.client.ResourceV1().ResourceClaims(a.key.Namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			return slimClaim(claim), nil
		},
		registered: func(driver string) (bool, error) {
			return p.registered(a, driver, func() (bool, error) {
				if p.published(a.node.Name, driver) {
					return true, nil
				}
				return p.publishedLive(ctx, a, driver)
			})
		},
	}
}

// registered reports whether a driver has registered with the node's kubelet: one
// that no template names always has, others are known by their slices.
func (p *Preparer) registered(a *attempt, driver string, published func() (bool, error)) (bool, error) {
	if !a.set.Names(driver) {
		return true, nil
	}
	if pluginOf(a.node) == pluginGone {
		return false, nil
	}
	return published()
}

// publishedLive asks for slices of the node, and of pools that it shares.
func (p *Preparer) publishedLive(ctx context.Context, a *attempt, driver string) (bool, error) {
	for _, node := range []string{a.node.Name, ""} {
		selector := fields.Set{resourcev1.ResourceSliceSelectorNodeName: node, resourcev1.ResourceSliceSelectorDriver: driver}
		list, err := p.client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{FieldSelector: selector.String()})
		if err != nil {
			return false, fmt.Errorf("list slices of driver %s on node %s: %w", driver, a.node.Name, err)
		}
		for i := range list.Items {
			t := a.set.SharedPool(driver, list.Items[i].Spec.Pool.Name)
			if node != "" || t != nil && t.Selects(a.node) {
				return true, nil
			}
		}
	}
	return false, nil
}

// check performs the kubelet's checks, on the caches first.
func (p *Preparer) check(ctx context.Context, a *attempt) ([]*resourcev1.ResourceClaim, error) {
	claims, err := check(a.pod, p.cached(a))
	if _, failed := errors.AsType[*prepareError](err); failed {
		return check(a.pod, p.live(ctx, a))
	}
	return claims, err
}

// recorder makes events in the name of the node's kubelet.
func (p *Preparer) recorder(node string) record.EventRecorder {
	return p.events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "kubelet", Host: node})
}
