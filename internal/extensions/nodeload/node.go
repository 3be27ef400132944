package nodeload

import (
	"context"
	"net/http"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kwok-dra/kwok-dra/internal/observe"
)

const (
	// renewInterval is how often a kubelet renews its Lease, heartbeatInterval how often it writes its Node.
	renewInterval     = 10 * time.Second
	heartbeatInterval = 5 * time.Minute
	// checksBeforeLease is how often a Lease must be missing before we make it: kwok may be about to.
	checksBeforeLease = 4
	// refusedInterval is how often a request that a Pod needs is sent again while the node authorizer does not know yet that
	// the Pod is bound. A kubelet waits up to ten seconds, and its Pod with it; a fake one runs meanwhile, and may end.
	refusedInterval = time.Second
)

// node sends the requests for one fake node, until it is stopped.
type node struct {
	*Controller

	uid     types.UID
	name    string
	ctx     context.Context
	stop    context.CancelFunc
	kubelet *client
	// sending are the goroutines that send the steps of Pods and the heartbeats; watches are counted, too.
	sending sync.WaitGroup

	mu      sync.Mutex
	drivers map[string]*driver
	pods    map[types.UID]*pod
	mounts  map[mount]*mountWatch
	// prepared has the Pods for which a claim is prepared.
	prepared map[types.UID]sets.Set[types.UID]
}

// driver is the client of a driver on a node. Its watch ends with stop; there is none of a driver without slices there.
type driver struct {
	*client

	stop context.CancelFunc
}

// pod is a Pod on a node.
type pod struct {
	record podRecord
	// steps are not sent yet, or just being sent. One goroutine sends them. It starts with the first step, and decides to end
	// while it still holds the lock under which it has removed the last one.
	steps []dueStep
}

// dueStep is a step with the time at which it is due.
type dueStep struct {
	step

	at time.Time
}

// mountWatch is the watch of a ConfigMap or a Secret that Pods of a node mount.
type mountWatch struct {
	pods sets.Set[types.UID]
	stop context.CancelFunc
}

// startNode starts the watches and heartbeats of a node's kubelet, and what a kubelet sends for the Pods that it finds.
func (c *Controller) startNode(ctx context.Context, object *corev1.Node) *node {
	n := &node{
		Controller: c, uid: object.UID, name: object.Name, kubelet: c.sender.newClient(kubeletOf(object.Name, c.version)),
		drivers: map[string]*driver{}, pods: map[types.UID]*pod{}, mounts: map[mount]*mountWatch{}, prepared: map[types.UID]sets.Set[types.UID]{},
	}
	n.ctx, n.stop = context.WithCancel(ctx)
	for _, of := range kubeletWatches(n.name) {
		n.sending.Go(func() { n.kubelet.keepWatch(n.ctx, of, c.version.lists) })
	}
	n.sending.Go(func() { n.sendHeartbeats(object) })
	return n
}

// sendHeartbeats sends what a kubelet sends when it starts, and then its heartbeats. Kwok renews the Lease of a node, unless
// it runs without leases: then it writes the status of the Node more often than a kubelet does.
func (n *node) sendHeartbeats(object *corev1.Node) {
	for _, r := range startRequests(object, time.Now()) {
		got := n.kubelet.send(n.ctx, time.Now(), r)
		if r.resource == "csinodes" && got.code == http.StatusNotFound && r.query == nil {
			n.kubelet.send(n.ctx, time.Now(), createCSINode(object))
		}
	}
	lease, heartbeat := nodeLease{node: n, object: object}, time.Now().Add(heartbeatInterval)
	for due := time.Now(); ; due = due.Add(renewInterval) {
		if !waitFor(n.ctx, time.Until(due)) {
			return
		}
		if !n.Owner.Acts(n.name, true) {
			n.loop.Add(n.name)
			return
		}
		lease.renewLease(due)
		if lease.isOfKwok && !due.Before(heartbeat) {
			heartbeat = heartbeat.Add(heartbeatInterval)
			if now := n.Caches.Nodes.Get(n.name); now != nil && now.UID == n.uid {
				n.kubelet.send(n.ctx, due, patchNodeStatus(now, time.Now()))
			}
		}
	}
}

// nodeLease is the Lease of a node, as far as it is ours to renew.
type nodeLease struct {
	node   *node
	object *corev1.Node
	// isOfKwok says that kwok renews it. It is not asked for again then.
	isOfKwok bool
	// version is that of our last write, or "".
	version string
	missing int
}

// renewLease does what is due every ten seconds.
func (l *nodeLease) renewLease(due time.Time) {
	if l.isOfKwok {
		return
	}
	if l.version == "" && l.missing < checksBeforeLease {
		got := l.node.kubelet.send(l.node.ctx, due, getLease(l.node.name))
		if got.code == http.StatusNotFound {
			l.missing++
		}
		l.noteHolder(got)
		return
	}
	got := l.node.kubelet.send(l.node.ctx, due, writeLease(l.object, l.version, time.Now()))
	if got.code != http.StatusOK && got.code != http.StatusCreated {
		l.version, l.missing = "", 0 // someone else has written it
		return
	}
	l.noteHolder(got)
}

func (l *nodeLease) noteHolder(got answer) {
	var lease coordinationv1.Lease
	if got.code != http.StatusOK && got.code != http.StatusCreated || unmarshalBody(got.body, &lease) != nil {
		return
	}
	l.version, l.isOfKwok = lease.ResourceVersion, lease.Spec.HolderIdentity != nil
}

// setDrivers starts and stops the watches of drivers, so that those with slices on the node have one.
func (n *node) setDrivers(names sets.Set[string]) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, running := range n.drivers {
		if !names.Has(name) {
			running.stop()
			delete(n.drivers, name)
		}
	}
	for name := range names {
		if n.drivers[name] == nil {
			n.drivers[name] = n.startDriver(name)
		}
	}
}

func (n *node) startDriver(name string) *driver {
	ctx, stop := context.WithCancel(n.ctx)
	d := &driver{n.sender.newClient(driverOf(name, n.name)), stop}
	n.sending.Go(func() { d.keepWatch(ctx, driverWatch(name, n.name), n.version.lists) })
	n.sending.Go(func() { d.send(ctx, time.Now(), getNode(n.name)) })
	return d
}

// podChanged sends what follows from a state of a Pod, which may be gone by now: a list of Pods may be older than the event
// that a Pod was deleted. The cache knows, since it changes before its events come.
func (n *node) podChanged(seen *podView) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ctx.Err() != nil {
		return
	}
	if now := n.Controller.pods.Get(observe.Key(seen).String()); now == nil || now.UID != seen.UID {
		n.forgetClaims(seen.UID)
		n.setMounts(seen.UID, nil)
		delete(n.pods, seen.UID)
		return
	}
	known := n.pods[seen.UID]
	if known == nil {
		known = &pod{}
		n.pods[seen.UID] = known
	}
	at, before := time.Now(), known.record.version
	var steps []step
	if known.record, steps = planPod(known.record, seen, at); known.record.version == before {
		return // it is no newer than what is known
	}
	if seen.phase == podTerminal {
		n.forgetClaims(seen.UID)
		n.setMounts(seen.UID, nil)
	} else {
		n.setMounts(seen.UID, seen.mounts)
	}
	if len(steps) == 0 {
		return
	}
	isSending := len(known.steps) > 0
	for _, s := range steps {
		known.steps = append(known.steps, dueStep{s, at.Add(s.after)})
	}
	if !isSending {
		n.sending.Go(func() { n.sendSteps(seen.UID, known) })
	}
}

// sendSteps sends the steps of a Pod in their order, until there are no more. A step that waits for the one before is not
// late.
func (n *node) sendSteps(uid types.UID, of *pod) {
	var idle time.Time
	for hasNext := true; hasNext; idle = time.Now() {
		n.mu.Lock()
		next := of.steps[0]
		n.mu.Unlock()
		if next.at.Before(idle) {
			next.at = idle
		}
		if !waitFor(n.ctx, time.Until(next.at)) {
			return
		}
		var got answer
		if next.request == nil {
			got = n.prepareClaims(uid, next)
		} else {
			got = n.kubelet.send(n.ctx, next.at, next.request)
		}
		n.mu.Lock()
		of.steps = of.steps[1:]
		if next.isNeeded && got.isUnrelated() && n.pods[uid] == of && of.record.phase != podTerminal {
			next.at = time.Now().Add(refusedInterval)
			of.steps = append(of.steps, next)
		}
		hasNext = len(of.steps) > 0
		n.mu.Unlock()
	}
}

// prepareClaims reads the claims of a Pod as the kubelet does, and then as the drivers do that it calls for them. It returns
// the answer to the kubelet's last read.
func (n *node) prepareClaims(uid types.UID, s dueStep) (got answer) {
	var claims []*resourcev1.ResourceClaim
	for _, key := range s.claims {
		claim := &resourcev1.ResourceClaim{}
		got = n.kubelet.send(n.ctx, s.at, getClaim(key))
		if got.code != http.StatusOK || unmarshalBody(got.body, claim) != nil {
			return got // the kubelet would fail here, too
		}
		claims = append(claims, claim)
		s.at = time.Now()
	}
	n.mu.Lock()
	reads := planPrepare(claims, func(claim types.UID) bool { return n.prepared[claim].Len() > 0 }, func(result *resourcev1.DeviceRequestAllocationResult) bool {
		return n.Caches.Slices.HaveDevice(n.name, result)
	})
	clients := map[string]*client{}
	for name := range reads {
		if running := n.drivers[name]; running != nil {
			clients[name] = running.client
		} else {
			clients[name] = n.sender.newClient(driverOf(name, n.name))
		}
	}
	if n.pods[uid] != nil {
		for _, claim := range claims {
			if n.prepared[claim.UID] == nil {
				n.prepared[claim.UID] = sets.New[types.UID]()
			}
			n.prepared[claim.UID].Insert(uid)
		}
	}
	n.mu.Unlock()
	for name, requests := range reads {
		for _, r := range requests {
			clients[name].send(n.ctx, time.Now(), r)
		}
	}
	return got
}

func (n *node) forgetClaims(pod types.UID) {
	for claim, pods := range n.prepared {
		if pods.Delete(pod); pods.Len() == 0 {
			delete(n.prepared, claim)
		}
	}
}

// setMounts starts and stops watches, so that there is one of each ConfigMap and Secret that a Pod of the node mounts.
func (n *node) setMounts(pod types.UID, mounts []mount) {
	wanted := sets.New(mounts...)
	for of, watched := range n.mounts {
		if watched.pods.Has(pod) && !wanted.Has(of) {
			if watched.pods.Delete(pod); watched.pods.Len() == 0 {
				watched.stop()
				delete(n.mounts, of)
			}
		}
	}
	for of := range wanted {
		watched := n.mounts[of]
		if watched == nil {
			ctx, stop := context.WithCancel(n.ctx)
			watched = &mountWatch{sets.New[types.UID](), stop}
			n.mounts[of] = watched
			n.sending.Go(func() { n.kubelet.keepWatch(ctx, of.newWatch(), n.version.lists) })
		}
		watched.pods.Insert(pod)
	}
}

// newWatch returns what a kubelet watches of a mount.
func (m mount) newWatch() watchOf {
	path := coreAPI + "/namespaces/" + m.namespace + "/" + m.resource
	return watchOf{m.resource, path, fields.OneTermEqualSelector("metadata.name", m.name).String(), objectWatchTimeout}
}
