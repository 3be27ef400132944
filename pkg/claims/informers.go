package claims

import (
	"bytes"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	resourceinformers "k8s.io/client-go/informers/resource/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/cached"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
)

// The indices of Pods.
const (
	byNode  = "node"
	byClaim = "claim"
)

// observedPod is what the cache keeps of a Pod. Most Pods of a cluster have no
// claims, and an empty corev1.Pod alone takes more than a kilobyte. One with
// claims is kept whole, since selectors and templates may see all of it, but
// encoded, which takes a third of the memory.
type observedPod struct {
	// Where the Pod has no claims, only the Meta is there.
	cached.Object[corev1.Pod, *corev1.Pod]
	node     string
	claims   []types.NamespacedName
	terminal bool
}

func (o *observedPod) hasClaims() bool { return o.Encoded != "" }

// pod is nil where the Pod has no claims.
func (o *observedPod) pod() *corev1.Pod {
	if !o.hasClaims() {
		return nil
	}
	return o.Decode()
}

// newPodInformer watches the Pods that are bound to a node.
func newPodInformer(client kubernetes.Interface) cache.TypedSharedIndexInformer[*observedPod] {
	informer := coreinformers.NewFilteredPodInformer(client, metav1.NamespaceAll, 0, cache.TypedIndexersToIndexers(podIndexers),
		func(options *metav1.ListOptions) { options.FieldSelector = "spec.nodeName!=" })
	cached.MustTransform(informer, observePod)
	return cache.NewTypedSharedIndexInformer[*observedPod](informer)
}

var podIndexers = cache.TypedIndexers[*observedPod]{byNode: nodeIndex, byClaim: claimIndex}

var claimIndexers = cache.TypedIndexers[*observedClaim]{
	byNode: func(observed *observedClaim) ([]string, error) {
		if observed.node != "" {
			return []string{observed.node}, nil
		}
		return nil, nil
	},
}

func nodeIndex(observed *observedPod) ([]string, error) {
	if !observed.hasClaims() {
		return nil, nil
	}
	return []string{observed.node}, nil
}

func claimIndex(observed *observedPod) ([]string, error) {
	var names []string
	for _, key := range observed.claims {
		names = append(names, key.String())
	}
	return names, nil
}

// observePod makes an observedPod of a Pod. It is the transform of the informer,
// which may pass it its own result.
func observePod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	observed := &observedPod{}
	if !usesClaims(pod) {
		observed.Meta = cached.MetaOf(pod)
		return observed, nil
	}
	observed.node, observed.claims, observed.terminal = pod.Spec.NodeName, claimsOf(pod), terminal(pod)
	// Selectors and templates do not see managedFields.
	pod.ManagedFields = nil
	var err error
	if observed.Object, err = cached.Keep(pod, ""); err != nil {
		return nil, fmt.Errorf("encode pod %s: %w", keyOf(pod), err)
	}
	return observed, nil
}

// observedClaim is what the cache keeps of a claim: what slimClaim leaves of it,
// encoded, which takes a fifth of the memory.
type observedClaim struct {
	cached.Object[resourcev1.ResourceClaim, *resourcev1.ResourceClaim]
	node      string
	allocated bool
	// ours marks a claim that kwok-dra has written to, or may have to before a Pod
	// is bound.
	ours bool
}

func newClaimInformer(client kubernetes.Interface) cache.TypedSharedIndexInformer[*observedClaim] {
	informer := resourceinformers.NewResourceClaimInformer(client, metav1.NamespaceAll, 0, cache.TypedIndexersToIndexers(claimIndexers))
	cached.MustTransform(informer, observeClaim)
	return cache.NewTypedSharedIndexInformer[*observedClaim](informer)
}

// observeClaim makes an observedClaim of a claim. It is the transform of the
// informer, which may pass it its own result.
func observeClaim(object any) (any, error) {
	claim, is := object.(*resourcev1.ResourceClaim)
	if !is {
		return object, nil
	}
	slim := slimClaim(claim)
	observed := &observedClaim{node: nodeOf(slim), allocated: slim.Status.Allocation != nil, ours: len(slim.ManagedFields) > 0 || hasBindingConditions(slim)}
	var err error
	if observed.Object, err = cached.Keep(slim, ""); err != nil {
		return nil, fmt.Errorf("encode claim %s: %w", keyOf(slim), err)
	}
	return observed, nil
}

// slimClaim keeps of a claim what preparing needs: whose it is, its status, and
// who of kwok-dra has written to that.
func slimClaim(claim *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	slim := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name:            claim.Name,
			Namespace:       claim.Namespace,
			UID:             claim.UID,
			ResourceVersion: claim.ResourceVersion,
			OwnerReferences: claim.OwnerReferences,
		},
		Status: claim.Status,
	}
	for _, field := range claim.ManagedFields {
		if ownsEntries(&field) {
			slim.ManagedFields = append(slim.ManagedFields, metav1.ManagedFieldsEntry{Manager: field.Manager, Subresource: field.Subresource})
		}
	}
	return slim
}

// ownsEntries reports whether a field manager of kwok-dra has entries. One that has
// withdrawn them all is still listed, without fields.
func ownsEntries(field *metav1.ManagedFieldsEntry) bool {
	if field.Subresource != "status" || field.Manager != fieldManager && field.Manager != bindingManager {
		return false
	}
	return field.FieldsV1 == nil || bytes.Contains(field.FieldsV1.GetRawBytes(), []byte(`"f:devices"`))
}

func (p *Preparer) addHandlers() error {
	nodes, err := p.nodes.Handle(p.nodeChanged)
	if err != nil {
		return err
	}
	pods, err := p.pods.AddTypedEventHandler(cache.TypedResourceEventHandlerDetailedFuncs[*observedPod]{
		AddFunc: func(observed *observedPod, isInInitialList bool) {
			if !observed.hasClaims() {
				return
			}
			if !isInInitialList {
				p.states.bound(keyOf(observed), observed.UID, time.Now())
			}
			p.podChanged(observed)
		},
		UpdateFunc: func(_, observed *observedPod) {
			if observed.hasClaims() {
				p.podChanged(observed)
			}
		},
		DeleteFunc: func(deleted cache.DeletedObject[*observedPod]) {
			p.changes.Add(1)
			p.podLoop.Add(types.NamespacedName(deleted.GetObjectName()))
			if observed := deleted.OptionalObj; observed != nil {
				p.enqueueClaims(observed)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	claims, err := p.watchClaims()
	if err != nil {
		return err
	}
	p.synced = []cache.DoneChecker{nodes, pods.HasSyncedChecker(), claims.HasSyncedChecker()}
	return nil
}

func (p *Preparer) watchClaims() (cache.ResourceEventHandlerRegistration, error) {
	registration, err := p.claims.AddTypedEventHandler(cache.TypedResourceEventHandlerFuncs[*observedClaim]{
		AddFunc: func(claim *observedClaim) {
			p.claimChanged(claim)
			p.enqueueUsers(claim)
		},
		UpdateFunc: func(old, claim *observedClaim) {
			p.claimChanged(claim)
			if old.allocated != claim.allocated || old.node != claim.node {
				p.enqueueUsers(claim)
			}
		},
		DeleteFunc: func(deleted cache.DeletedObject[*observedClaim]) {
			p.changes.Add(1)
			if deleted.OptionalObj != nil {
				p.states.forgetClaim(deleted.OptionalObj.UID)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch claims: %w", err)
	}
	return registration, nil
}

// named is an object of the API, or what the cache has of it.
type named interface {
	GetNamespace() string
	GetName() string
}

func keyOf(object named) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// podChanged queues a Pod, and its claims where it no longer uses them.
func (p *Preparer) podChanged(observed *observedPod) {
	p.changes.Add(1)
	p.podLoop.Add(keyOf(observed))
	if observed.terminal {
		p.enqueueClaims(observed)
	}
}

// claimChanged queues a claim that there may be something to do about.
func (p *Preparer) claimChanged(observed *observedClaim) {
	p.changes.Add(1)
	if observed.ours {
		p.claimLoop.Add(keyOf(observed))
	}
}

// enqueueUsers queues the Pods of a claim that comes or is allocated anew, since
// what is allocated decides which replica prepares it. The Pods may have been seen
// before it.
func (p *Preparer) enqueueUsers(observed *observedClaim) {
	for _, pod := range p.observedBy(byClaim, keyOf(observed).String()) {
		p.podLoop.Add(keyOf(pod))
	}
}

// nodeChanged queues the Pods of a node that comes or goes, or whose devices
// turn healthy or unhealthy.
func (p *Preparer) nodeChanged(update lifecycle.Update) {
	if old, node := update.Both(); old != nil && p.sameToPods(old, node) {
		return
	}
	p.enqueueNode(update.Name)
}

// sameToPods reports whether a change of a node matters to none of its Pods.
func (p *Preparer) sameToPods(old, node *corev1.Node) bool {
	return old.UID == node.UID && p.nodes.Fake(old) == p.nodes.Fake(node) && pluginOf(old) == pluginOf(node) &&
		old.Annotations[v1alpha1.DeviceTaintsAnnotation] == node.Annotations[v1alpha1.DeviceTaintsAnnotation]
}

func (p *Preparer) enqueueClaims(observed *observedPod) {
	for _, key := range observed.claims {
		p.claimLoop.Add(key)
	}
}

// enqueueAll queues everything, since the configuration has changed.
func (p *Preparer) enqueueAll() {
	for _, object := range p.pods.GetStore().List() {
		if observed := object.(*observedPod); observed.hasClaims() {
			p.podChanged(observed)
		}
	}
	for _, claim := range p.claims.GetStore().List() {
		p.claimChanged(claim.(*observedClaim))
	}
}

// observedBy are the Pods with claims that an index has under a value.
func (p *Preparer) observedBy(index, value string) []*observedPod {
	found, err := p.pods.GetTypedIndexer().ByTypedIndex(index, value)
	if err != nil {
		panic(fmt.Sprintf("list pods by %s: %v", index, err)) // there is no such index
	}
	return found
}

// podsBy are copies of the Pods of observedBy.
func (p *Preparer) podsBy(index, value string) []*corev1.Pod {
	found := p.observedBy(index, value)
	pods := make([]*corev1.Pod, len(found))
	for i, observed := range found {
		pods[i] = observed.pod()
	}
	return pods
}
