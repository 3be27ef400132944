package computedomains

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/internal/controller/loop"
	"github.com/kwok-dra/kwok-dra/internal/controller/shard"
	"github.com/kwok-dra/kwok-dra/internal/observe"
	"github.com/kwok-dra/kwok-dra/internal/observe/cached"
)

// Controller plays the plugins and daemons of the fake nodes that this replica acts for.
type Controller struct {
	Options

	domains cached.Informer[*domain]
	cliques cached.Informer[*clique]
	// nodeLoop reconciles what belongs to one node, cliqueLoop the ComputeDomainCliques.
	nodeLoop   *loop.Loop[string]
	cliqueLoop *loop.Loop[cliqueKey]
	// onNode is the callback of OnChange.
	onNode func(node string)

	mu sync.Mutex
	// uses has the nodes on which Pods use ComputeDomains.
	uses map[string]nodeUse
	// full has the nodes whose daemons find no free index, by their clique.
	full map[cliqueKey][]string
}

// nodeUse is what the Pods of a node use.
type nodeUse struct {
	domain string
	clique cliqueKey
	// listed is what the clique depends on.
	listed listedDaemon
}

// listedDaemon is the part of a daemon that its clique lists. A Pod that replaces another owns the clique anew.
type listedDaemon struct {
	uid   types.UID
	ip    string
	ready bool
}

// Options configure a Controller. All but Owner are required.
type Options struct {
	Client  kubernetes.Interface
	Objects dynamic.Interface
	// The caller runs Caches and Owner.
	Caches *observe.Caches
	Owner  *shard.Owner
}

// New makes a Controller; Run starts it.
func New(o Options) *Controller {
	c := &Controller{Options: o, onNode: func(string) {}, uses: map[string]nodeUse{}, full: map[cliqueKey][]string{}}
	newInformer := func(resource schema.GroupVersionResource, indexers cache.Indexers) cache.SharedIndexInformer {
		return dynamicinformer.NewFilteredDynamicInformer(o.Objects, resource, metav1.NamespaceAll, 0, indexers, nil).Informer()
	}
	c.domains = cached.NewInformer[*domain](newInformer(domainsResource, cache.TypedIndexersToIndexers(domainIndexers)), cached.Transform(observeDomain))
	c.cliques = cached.NewInformer[*clique](newInformer(cliquesResource, cache.TypedIndexersToIndexers(cliqueIndexers)), cached.Transform(observeClique))
	c.nodeLoop = loop.New("computedomain-nodes", c.reconcileNode)
	c.cliqueLoop = loop.New("computedomain-cliques", c.reconcileClique)
	o.Owner.OnChange(c.nodeLoop.Add, c.enqueueAll)
	c.addHandlers()
	return c
}

func (c *Controller) addHandlers() {
	c.Caches.Nodes.Handle(func(name string, _, _ *observe.Node) { c.nodeLoop.Add(name) })
	enqueueNodeOf := func(pod *observe.Pod) {
		if pod.HasClaims() {
			c.nodeLoop.Add(pod.Node)
		}
	}
	c.Caches.Pods.Handle(cache.TypedResourceEventHandlerFuncs[*observe.Pod]{
		AddFunc:    enqueueNodeOf,
		UpdateFunc: func(_, pod *observe.Pod) { enqueueNodeOf(pod) },
		DeleteFunc: func(deleted cache.DeletedObject[*observe.Pod]) {
			if deleted.OptionalObj != nil {
				enqueueNodeOf(deleted.OptionalObj)
			}
		},
	})
	c.Caches.Claims.Handle(cache.TypedResourceEventHandlerFuncs[*observe.Claim]{ // which may come after the Pod
		AddFunc: func(claim *observe.Claim) { c.nodeLoop.Add(claim.Node) },
		UpdateFunc: func(old, claim *observe.Claim) {
			if old.Node != claim.Node {
				c.nodeLoop.Add(claim.Node)
			}
		},
	})
	c.domains.Handle(cache.TypedResourceEventHandlerFuncs[*domain]{
		AddFunc:    c.enqueueUsers,
		UpdateFunc: c.domainChanged,
		DeleteFunc: func(deleted cache.DeletedObject[*domain]) {
			if deleted.OptionalObj != nil {
				c.enqueueUsers(deleted.OptionalObj)
			}
		},
	})
	c.cliques.Handle(cache.TypedResourceEventHandlerFuncs[*clique]{
		AddFunc:    func(now *clique) { c.cliqueChanged(&clique{}, now) },
		UpdateFunc: c.cliqueChanged,
		DeleteFunc: func(deleted cache.DeletedObject[*clique]) {
			c.cliqueLoop.Add(cliqueKey(deleted.GetObjectName()))
		},
	})
}

// enqueueUsers queues the nodes whose Pods use a ComputeDomain that is new or gone.
func (c *Controller) enqueueUsers(d *domain) {
	for _, node := range c.nodesOf(d) {
		c.nodeLoop.Add(node)
		c.onNode(node)
	}
}

// domainChanged announces the nodes that have become ready or are no longer. NVIDIA's controller updates a ComputeDomain for
// each of its nodes, and what nodes and daemons write does not depend on that.
func (c *Controller) domainChanged(old, now *domain) {
	for _, node := range c.nodesOf(now) {
		if old.ready[node] != now.ready[node] {
			c.onNode(node)
		}
	}
}

// nodesOf lists the nodes whose Pods use a ComputeDomain.
func (c *Controller) nodesOf(d *domain) []string {
	return c.nodesWith(func(use nodeUse) bool { return use.domain == string(d.UID) })
}

// cliqueChanged queues a clique, and announces the nodes whose daemons have become ready.
func (c *Controller) cliqueChanged(old, now *clique) {
	c.cliqueLoop.Add(observe.Key(now))
	for _, entry := range now.daemons {
		if entry.Status == statusReady && !old.isReady(entry.NodeName) {
			c.onNode(entry.NodeName)
		}
	}
}

func (c *Controller) enqueueCliques(keys ...cliqueKey) {
	for _, key := range keys {
		if key != (cliqueKey{}) {
			c.cliqueLoop.Add(key)
		}
	}
}

// enqueueAll queues all nodes and cliques.
func (c *Controller) enqueueAll() {
	for _, name := range c.Caches.Nodes.Keys() {
		c.nodeLoop.Add(name)
	}
	for clique := range c.cliques.All() {
		c.cliqueLoop.Add(observe.Key(clique))
	}
}

// nodesWith lists the nodes with such a use.
func (c *Controller) nodesWith(isWanted func(use nodeUse) bool) (nodes []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for node, use := range c.uses {
		if isWanted(use) {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// CheckHealth returns an error if a loop of the Controller is stuck.
func (c *Controller) CheckHealth() error {
	return errors.Join(c.nodeLoop.CheckHealth(), c.cliqueLoop.CheckHealth())
}

// Run acts until ctx ends, with that many workers for nodes and as many for cliques. Nothing happens before the cluster
// has the definitions of NVIDIA's driver.
func (c *Controller) Run(ctx context.Context, workers int) {
	var running sync.WaitGroup
	running.Go(func() { c.domains.Run(ctx) })
	running.Go(func() { c.cliques.Run(ctx) })
	cache.WaitFor(ctx, "", slices.Concat(c.Caches.Synced(), c.Owner.Synced(), c.synced())...)
	running.Go(func() { c.nodeLoop.Run(ctx, workers) })
	c.cliqueLoop.Run(ctx, workers)
	running.Wait()
}

// synced is done when the caches of ComputeDomains and their cliques are complete.
func (c *Controller) synced() []cache.DoneChecker {
	return slices.Concat(c.domains.Synced(), c.cliques.Synced())
}

// planNodeNamed returns the plan for a node. It is empty for one that does not exist, or that this replica does not act
// for.
func (c *Controller) planNodeNamed(name string) (*corev1.Node, nodePlan) {
	node := c.Caches.Nodes.Get(name)
	if node == nil || !c.Owner.Acts(name, true) {
		return nil, nodePlan{}
	}
	view := &nodeView{node: node, claims: c.Caches.Claims.Of, namespaceOf: func(uid string) string {
		if d := c.domainWith(uid); d != nil {
			return d.Namespace
		}
		return ""
	}}
	for _, pod := range c.Caches.Pods.On(name) {
		view.pods = append(view.pods, pod.Decode())
	}
	slices.SortFunc(view.pods, func(a, b *corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return node, planNode(view)
}

// domainWith returns the ComputeDomain with a UID, or nil.
func (c *Controller) domainWith(uid string) *domain {
	if found := c.domains.By(byUID, uid); len(found) > 0 {
		return found[0]
	}
	return nil
}

// reconcileNode brings a Node and the Pod of its daemon up to date, and queues their clique.
func (c *Controller) reconcileNode(ctx context.Context, name string) error {
	node, plan := c.planNodeNamed(name)
	c.mu.Lock()
	before, now := c.uses[name], nodeUse{domain: plan.domain, clique: plan.clique}
	if plan.daemon != nil {
		now.listed = listedDaemon{plan.daemon.pod.UID, plan.daemon.pod.Status.PodIP, plan.daemon.ready}
	}
	c.uses[name] = now
	if now == (nodeUse{}) {
		delete(c.uses, name)
	}
	c.mu.Unlock()
	if now.domain != before.domain {
		c.onNode(name) // before the caches are complete, Check has no answer
	}
	if now != before {
		c.enqueueCliques(before.clique, now.clique)
	}
	if plan.label != nil {
		var value any // nil removes the label
		if *plan.label != "" {
			value = *plan.label
		}
		if _, err := c.Client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, patchOf(node.UID, domainLabel, value), metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("label node %s with its ComputeDomain: %w", name, err)
		}
		klog.FromContext(ctx).V(2).Info("Labeled the node with its ComputeDomain", "node", name, "domain", *plan.label)
	}
	if plan.labelDaemon {
		pod := plan.daemon.pod
		if _, err := c.Client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patchOf(pod.UID, cliqueLabel, node.Labels[fabricLabel]), metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("label daemon pod %s with its clique: %w", observe.Key(pod), err)
		}
	}
	return nil
}

// patchOf is a merge patch of a label of one object, and of no other that has its name later. A nil value removes the label.
func patchOf(uid types.UID, label string, value any) []byte {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid, "labels": map[string]any{label: value}}})
	if err != nil {
		panic(fmt.Sprintf("encode a patch: %v", err)) // there is nothing in it that cannot be encoded
	}
	return patch
}

// maxLogged is how many nodes without a place in their clique the log names.
const maxLogged = 3

// reportFull logs the nodes whose daemons find no free index in a clique, once for each change, and keeps them for Check.
func (c *Controller) reportFull(ctx context.Context, key cliqueKey, full []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Equal(full, c.full[key]) {
		return
	}
	if len(full) == 0 {
		delete(c.full, key)
		return
	}
	c.full[key] = full
	klog.FromContext(ctx).Info("The ComputeDomainClique is full; more nodes have its ID in their label than one NVLink domain has",
		"clique", key, "label", fabricLabel, "nodes", full[:min(len(full), maxLogged)], "count", len(full))
}

// findsNoPlace reports whether the daemon of a node finds no free index in its clique.
func (c *Controller) findsNoPlace(node string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.full[c.uses[node].clique], node)
}

// reconcileClique brings the entries of a clique up to date whose nodes this replica acts for.
func (c *Controller) reconcileClique(ctx context.Context, key cliqueKey) error {
	view := &cliqueView{key: key, existing: c.cliques.Get(key.String()), daemons: map[string]*daemon{}}
	nodes := c.nodesWith(func(use nodeUse) bool { return use.clique == key })
	if view.existing != nil {
		for _, entry := range view.existing.daemons {
			nodes = append(nodes, entry.NodeName)
		}
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(nodes))) { // most have an entry already
		node, plan := c.planNodeNamed(name)
		switch {
		case node == nil: // the controller removes the entry of a node that has gone
		case plan.clique == key:
			view.daemons[name] = plan.daemon
		default:
			view.daemons[name] = nil
		}
	}
	want, full := planClique(view)
	c.reportFull(ctx, key, full)
	if want == nil {
		return nil
	}
	client := c.Objects.Resource(cliquesResource).Namespace(key.Namespace)
	var err error
	if view.existing == nil {
		_, err = client.Create(ctx, want, metav1.CreateOptions{})
	} else { // NVIDIA's controller writes it, too: after a conflict it is planned again
		_, err = client.Update(ctx, want, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("write ComputeDomainClique %s: %w", key, err)
	}
	return nil
}
