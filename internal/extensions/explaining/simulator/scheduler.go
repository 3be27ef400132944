package simulator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
)

const (
	// filterTimeout is how long the scheduler looks for devices on one node.
	filterTimeout = 10 * time.Second
	// alwaysTried is how many nodes the scheduler looks at, however many are fit.
	alwaysTried = 100
)

// everything enables all features of the allocator. The API server drops the fields of a feature
// that is off, so slices and claims do not have them then.
var everything = structured.Features{
	AdminAccess: true, CompatibilityGroups: true, ConsumableCapacity: true, DerivedAttributes: true, DeviceBindingAndStatus: true,
	DeviceTaints: true, FractionalCapacityRange: true, ListTypeAttributes: true, OptionalNodeOperations: true,
	PartitionableDevices: true, PrioritizedList: true,
}

// Scheduler gives devices to Pods, one Pod after the other.
type Scheduler struct {
	allocator

	nodes  []*node
	kinds  map[string]*kind
	isLive bool
	// lacksPods says that the Pods that are there are not known, repelling are those of them with anti-affinity, and placed is
	// how many Pods have come.
	lacksPods bool
	repelling []repellent
	placed    int
}

// allocator finds devices on a node.
type allocator struct {
	*catalog

	matcher   *matcher
	published *publications
	allocated structured.AllocatedState
	// states maps devices to what the inventory says of them. It is nil until that is asked for.
	states map[structured.DeviceID]*inventory.Device
	// reserved maps Pods to their allocated claims. It is nil until that is asked for.
	reserved map[types.UID][]*resourcev1.ResourceClaim
}

// catalog holds the objects by which Pods ask for devices. The Scheduler adds the claims that it
// makes for Pods.
type catalog struct {
	classes   classes
	resources *extendedresourcecache.ExtendedResourceCache
	templates map[string]*resourcev1.ResourceClaimTemplate
	claims    map[string]*resourcev1.ResourceClaim
	// adminAccess maps each namespace that is known to whether it permits admin access.
	adminAccess map[string]bool
	// namespaces have the labels of those that are known.
	namespaces map[string]labels.Set
}

// node is a node with what its Pods take.
type node struct {
	usage

	object    *corev1.Node
	residents []*corev1.Pod
	slices    []*resourcev1.ResourceSlice
	// devices are those that the node reaches, computed on first use.
	devices []device
}

// Placement is the node that a Pod gets, or why it gets none.
type Placement struct {
	Pod *corev1.Pod
	// Node is empty if the Pod fits on none.
	Node string
	// Claims are the Pod's, with their devices.
	Claims []*resourcev1.ResourceClaim
	// Reason says why the Pod fits on no node, if that does not depend on the nodes.
	Reason string
}

// NewScheduler makes a Scheduler for a world, which it does not change.
func NewScheduler(world *World) *Scheduler {
	s := &Scheduler{
		allocator: allocator{catalog: newCatalog(world), published: newPublications(world.Slices, world.TaintRules), allocated: newAllocated()},
		kinds:     map[string]*kind{},
		isLive:    world.IsLive,
		lacksPods: world.LacksPods,
	}
	s.matcher = newMatcher(s.classes)
	for _, claim := range s.claims {
		addAllocated(s.allocated, claim.Status.Allocation)
	}
	named := make(map[string]*node, len(world.Nodes))
	for _, object := range world.Nodes {
		n := &node{object: object, slices: s.published.slicesFor(object.Name)}
		named[object.Name], s.nodes = n, append(s.nodes, n)
	}
	for _, pod := range world.Pods {
		if n := named[pod.Spec.NodeName]; n != nil {
			s.repelling = append(s.repelling, n.addResident(pod, needs{podRequests(pod), hostPortsOf(pod)})...)
		}
	}
	slices.SortFunc(s.nodes, func(a, b *node) int { return strings.Compare(a.object.Name, b.object.Name) })
	return s
}

func newCatalog(world *World) *catalog {
	o := &catalog{
		classes:   classes{},
		resources: extendedresourcecache.NewExtendedResourceCache(klog.Background()),
		templates: map[string]*resourcev1.ResourceClaimTemplate{},
		claims:    map[string]*resourcev1.ResourceClaim{},

		adminAccess: map[string]bool{},
		namespaces:  map[string]labels.Set{},
	}
	for _, class := range world.Classes {
		o.classes[class.Name] = class
		o.resources.OnAdd(class, true)
	}
	for _, template := range world.ClaimTemplates {
		o.templates[objectKey(template.Namespace, template.Name)] = template
	}
	for _, claim := range world.Claims {
		if claim.Status.Allocation == nil {
			claim = claim.DeepCopy()
			setDefaults(&claim.Spec)
		}
		o.claims[objectKey(claim.Namespace, claim.Name)] = claim
	}
	for _, namespace := range world.Namespaces {
		o.namespaces[namespace.Name] = namespace.Labels
		o.adminAccess[namespace.Name] = namespace.Labels[resourcev1.DRAAdminNamespaceLabelKey] == "true"
	}
	return o
}

// Clone copies the Scheduler with all that it has given.
func (s *Scheduler) Clone() *Scheduler {
	clone := *s
	clone.allocated = cloneAllocated(s.allocated)
	clone.kinds, clone.states, clone.reserved = map[string]*kind{}, nil, nil
	clone.catalog, clone.repelling = new(*s.catalog), slices.Clone(s.repelling)
	clone.claims = maps.Clone(s.claims)
	for name, claim := range clone.claims {
		clone.claims[name] = claim.DeepCopy()
	}
	clone.nodes = make([]*node, len(s.nodes))
	for i, n := range s.nodes {
		clone.nodes[i] = new(*n)
		clone.nodes[i].usage, clone.nodes[i].residents = n.clone(), slices.Clone(n.residents)
	}
	return &clone
}

// Schedule finds a node for a Pod, and gives it the devices there.
func (s *Scheduler) Schedule(ctx context.Context, pod *corev1.Pod) *Placement {
	d, err := s.demandOf(pod)
	placement := &Placement{Pod: pod, Claims: d.claims}
	if err != nil {
		placement.Reason = err.Error()
		if _, isMissing := errors.AsType[*Missing](err); isMissing {
			placement.Reason += ": give its file with -f"
		}
		return placement
	}
	chosen, results, err := s.chooseNode(ctx, d)
	if err != nil {
		placement.Reason = err.Error()
	}
	if err != nil || chosen == nil {
		return placement
	}
	placement.Node = chosen.object.Name
	for i, claim := range d.pending {
		claim.Status.Allocation = &results[i]
		addAllocated(s.allocated, claim.Status.Allocation)
	}
	for i, claim := range d.claims {
		if !isReservedFor(claim, pod) {
			if !slices.Contains(d.pending, claim) { // it is still the caller's
				claim = claim.DeepCopy()
				d.claims[i], s.claims[objectKey(claim.Namespace, claim.Name)] = claim, claim
			}
			claim.Status.ReservedFor = append(claim.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{
				Resource: "pods", Name: pod.Name, UID: pod.UID,
			})
		}
	}
	s.repelling = append(s.repelling, chosen.addResident(pod, d.needs)...)
	s.placed++
	s.states, s.reserved = nil, nil
	return placement
}

// chooseNode finds the node for a Pod. Like the scheduler, it prefers a node that has the first
// alternatives of the requests.
func (s *Scheduler) chooseNode(ctx context.Context, d *demand) (*node, []resourcev1.AllocationResult, error) {
	k := s.kindOf(ctx, d)
	for rank := range k.open {
		isWhole := rank+1 == len(k.open)
		chosen, results, err := s.findFirstFitting(ctx, d, &k.open[rank], d.claimsUpTo(rank+1, len(k.open)), isWhole)
		if err != nil {
			return nil, nil, err
		}
		if chosen == nil {
			continue
		}
		if !isWhole { // with all alternatives the choice may be another
			if results, err = s.allocateOn(ctx, chosen, d.pending); err != nil {
				return nil, nil, err
			}
		}
		if k.mayFail && len(s.nodes) <= alwaysTried {
			err = s.checkAllNodes(ctx, d)
		}
		return chosen, results, err
	}
	return nil, nil, nil
}

// checkAllNodes returns an error if the scheduler fails on any node: that keeps a Pod waiting,
// though it would fit on another node.
func (s *Scheduler) checkAllNodes(ctx context.Context, d *demand) error {
	for _, n := range s.nodes {
		if !s.admits(n, d) {
			continue
		}
		if _, err := s.allocateOn(ctx, n, d.pending); err != nil && !errors.Is(err, structured.ErrFailedAllocationOnNode) {
			return fmt.Errorf("on node %s: %w", n.object.Name, err)
		}
	}
	return nil
}

// allocateOn asks the allocator for the devices of a node. It returns nil without an error if the
// node lacks them.
func (a *allocator) allocateOn(ctx context.Context, n *node, claims []*resourcev1.ResourceClaim) ([]resourcev1.AllocationResult, error) {
	if len(claims) == 0 {
		return []resourcev1.AllocationResult{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, filterTimeout)
	defer cancel()
	allocator, err := structured.NewAllocator(ctx, everything, a.allocated, a.classes, n.slices, a.matcher.cel)
	if err != nil {
		return nil, err
	}
	return allocator.Allocate(ctx, n.object, claims)
}

// classes lists device classes for the allocator.
type classes map[string]*resourcev1.DeviceClass

// List lists all.
func (c classes) List() ([]*resourcev1.DeviceClass, error) {
	return slices.Collect(maps.Values(c)), nil
}

// Get gets one.
func (c classes) Get(name string) (*resourcev1.DeviceClass, error) {
	if class := c[name]; class != nil {
		return class, nil
	}
	return nil, fmt.Errorf("deviceclass %q not found", name)
}

// InOrder sorts Pods as the scheduler does: by priority, then by age.
func InOrder(pods []*corev1.Pod) []*corev1.Pod {
	return slices.SortedStableFunc(slices.Values(pods), func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(priorityOf(b), priorityOf(a)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time))
	})
}

func priorityOf(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}
