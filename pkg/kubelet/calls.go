package kubelet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"

	"github.com/kwok-dra/kwok-dra/pkg/claims/plan"
	"github.com/kwok-dra/kwok-dra/pkg/kubelet/claiminfo"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
)

// releaseAgain is how long after a failure drivers are asked again to unprepare the claims of a
// Pod that is gone (backOffPeriod in pkg/kubelet).
const releaseAgain = 10 * time.Second

// calls are the calls of drivers for the Pods of a node. Each Pod has its own, so that a
// driver that hangs holds up no other Pod.
type calls struct {
	node *node
	ctx  context.Context

	mu sync.Mutex
	// byPod ends with a call that succeeds, with take, or with forget.
	byPod map[types.UID]*call
}

// call is one that runs, or that has failed.
type call struct {
	// unprepare tells apart the two calls that there are.
	unprepare bool
	running   bool
	cancel    context.CancelFunc
	err       error
	ended     time.Time
}

// beginPrepare asks drivers in the background to prepare claims for a Pod, unless a call runs for it.
func (c *calls) beginPrepare(pod types.UID, claims []claiminfo.Claim, ended func()) {
	c.begin(pod, &call{}, func(ctx context.Context) error { return c.prepare(ctx, pod, claims) }, ended)
}

// beginUnprepare asks drivers in the background to unprepare the claims of a Pod, in the order in which it
// names them. If they are still asked to prepare them, as for a Pod that is deleted, that is given up, and the
// Pod is looked at again.
func (c *calls) beginUnprepare(pod types.UID, order []types.NamespacedName, ended func()) {
	c.begin(pod, &call{unprepare: true}, func(ctx context.Context) error { return c.unprepare(ctx, pod, order) }, ended)
}

func (c *calls) begin(pod types.UID, now *call, ask func(context.Context) error, ended func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.byPod[pod]; known != nil && known.running || c.ctx.Err() != nil {
		if known != nil && now.unprepare && !known.unprepare {
			known.cancel()
		}
		return
	}
	ctx, cancel := context.WithCancel(c.ctx)
	now.running, now.cancel = true, cancel
	c.byPod[pod] = now
	c.node.running.Go(func() {
		defer cancel()
		err := ask(ctx)
		c.mu.Lock()
		now.running, now.err, now.ended = false, err, time.Now()
		if err == nil {
			delete(c.byPod, pod)
		}
		c.mu.Unlock()
		ended()
	})
}

// take returns the call that runs for a Pod, or the last one if it has failed, once.
func (c *calls) take(pod types.UID) call {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.byPod[pod]
	switch {
	case known == nil:
		return call{}
	case !known.running:
		delete(c.byPod, pod)
	}
	return *known
}

// rests reports whether drivers are being asked to unprepare the claims of a Pod that is gone, or have just failed to.
func (c *calls) rests(pod types.UID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.byPod[pod]
	return known != nil && known.unprepare && (known.running || time.Since(known.ended) < releaseAgain)
}

// release has drivers unprepare the claims of Pods that are gone, as reconcileLoop in
// pkg/kubelet/cm/dra does.
func (c *calls) release() {
	users, there := c.node.claims.Pods(), sets.New[types.UID]()
	if users.Len() == 0 && c.isEmpty() || !c.node.acts() {
		return
	}
	for _, pod := range c.node.Caches.Pods.On(c.node.name) {
		there.Insert(pod.UID)
	}
	c.forget(users.Union(there))
	for pod := range users.Difference(there) {
		if !c.rests(pod) && !c.node.Caches.HasConsumer(c.node.name, pod) {
			c.beginUnprepare(pod, nil, func() {})
		}
	}
}

func (c *calls) isEmpty() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.byPod) == 0
}

// forget forgets calls that have failed for Pods that nothing is left of.
func (c *calls) forget(left sets.Set[types.UID]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.byPod, func(pod types.UID, known *call) bool { return !known.running && !left.Has(pod) })
}

// prepare asks the drivers of claims to prepare them, in one call per driver, as
// prepareResources in pkg/kubelet/cm/dra does.
func (c *calls) prepare(ctx context.Context, pod types.UID, claims []claiminfo.Claim) error {
	left, err := c.node.claims.Join(pod, claims)
	if err != nil {
		return err
	}
	for driver, batch := range batches(left) {
		if err := c.prepareBatch(ctx, driver, batch); err != nil {
			return err
		}
	}
	return c.node.claims.SetPrepared(left)
}

// batch has claims for one driver.
type batch struct {
	claims   []claiminfo.Claim
	messages []*drav1.Claim
}

// batches are the claims by driver, in the order of the drivers' names.
func batches(claims []claiminfo.Claim) func(yield func(driver string, b batch) bool) {
	byDriver := map[string]batch{}
	for _, claim := range claims {
		for _, driver := range claim.Drivers {
			b := byDriver[driver]
			b.claims = append(b.claims, claim)
			b.messages = append(b.messages, &drav1.Claim{Namespace: claim.Namespace, Name: claim.Name, Uid: string(claim.UID)})
			byDriver[driver] = b
		}
	}
	return func(yield func(string, batch) bool) {
		for _, driver := range sets.List(sets.KeySet(byDriver)) {
			if !yield(driver, byDriver[driver]) {
				return
			}
		}
	}
}

func (c *calls) prepareBatch(ctx context.Context, driver string, b batch) error {
	p, err := c.node.plugins.Get(driver)
	if err != nil {
		return err
	}
	response, err := p.Prepare(ctx, b.messages)
	if err != nil {
		return fmt.Errorf("NodePrepareResources: %w", err)
	}
	for uid, result := range response.GetClaims() {
		i := slices.IndexFunc(b.claims, func(claim claiminfo.Claim) bool { return string(claim.UID) == uid })
		if i < 0 {
			return fmt.Errorf("NodePrepareResources returned result for unknown claim UID %s", uid)
		}
		if failure := result.GetError(); failure != "" {
			return fmt.Errorf("NodePrepareResources failed for ResourceClaim %s: %s", b.claims[i].Name, failure)
		}
		var devices []claiminfo.Device
		for _, device := range result.GetDevices() {
			devices = append(devices, claiminfo.Device{
				PoolName: device.GetPoolName(), DeviceName: device.GetDeviceName(), ShareID: (*types.UID)(device.ShareId),
				RequestNames: device.GetRequestNames(), CDIDeviceIDs: device.GetCdiDeviceIds(),
			})
		}
		if err := c.node.claims.SetDevices(b.claims[i], driver, devices); err != nil {
			return err
		}
	}
	if skipped := len(b.claims) - len(response.GetClaims()); skipped != 0 {
		return fmt.Errorf("NodePrepareResources skipped %d ResourceClaims", skipped)
	}
	return nil
}

// unprepare asks the drivers of the claims that a Pod is the last user of to unprepare them, in one
// call per driver, as unprepareResources in pkg/kubelet/cm/dra does.
func (c *calls) unprepare(ctx context.Context, pod types.UID, order []types.NamespacedName) error {
	last := c.node.claims.Leave(pod)
	slices.SortStableFunc(last, func(a, b claiminfo.Info) int {
		return slices.Index(order, a.Key()) - slices.Index(order, b.Key())
	})
	byDriver := map[string][]*drav1.Claim{}
	for i := range last {
		for driver := range last[i].DriverState {
			byDriver[driver] = append(byDriver[driver], &drav1.Claim{Namespace: last[i].Namespace, Name: last[i].ClaimName, Uid: string(last[i].ClaimUID)})
		}
	}
	var err error
	for _, driver := range sets.List(sets.KeySet(byDriver)) {
		if err = c.unprepareBatch(ctx, driver, byDriver[driver]); err != nil {
			klog.FromContext(ctx).V(2).Info("Unpreparing the claims of the pod failed, trying again", "podUID", pod, "err", err)
			break
		}
	}
	return c.node.claims.SetUnprepared(last, err)
}

func (c *calls) unprepareBatch(ctx context.Context, driver string, claims []*drav1.Claim) error {
	switch c.node.pluginState() { // by what Stages say
	case lifecycle.PluginSilent:
		return plan.UnavailableToUnprepare(driver)
	case lifecycle.PluginGone:
		return plan.NotRegistered(driver)
	}
	p, err := c.node.plugins.Get(driver)
	if err != nil {
		return err
	}
	response, err := p.Unprepare(ctx, claims)
	if err != nil {
		return fmt.Errorf("NodeUnprepareResources: %w", err)
	}
	for uid, result := range response.GetClaims() {
		i := slices.IndexFunc(claims, func(claim *drav1.Claim) bool { return claim.GetUid() == uid })
		if i < 0 {
			return fmt.Errorf("NodeUnprepareResources returned result for unknown claim UID %s", uid)
		}
		if failure := result.GetError(); failure != "" {
			return fmt.Errorf("NodeUnprepareResources failed for ResourceClaim %s: %s", claims[i].GetName(), failure)
		}
	}
	if skipped := len(claims) - len(response.GetClaims()); skipped != 0 {
		return fmt.Errorf("NodeUnprepareResources skipped %d ResourceClaims", skipped)
	}
	return nil
}
