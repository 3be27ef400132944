package kubelet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/claiminfo"
	"github.com/kwok-dra/kwok-dra/internal/observe"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
)

// releaseRetryInterval is how long after a failure drivers are asked again to unprepare the claims of a
// deleted Pod (backOffPeriod in internal/extensions/realdrivers/kubelet).
const releaseRetryInterval = 10 * time.Second

// calls runs the calls of drivers for the Pods of a node. Each Pod has its own call, so a driver that
// hangs holds up no other Pod.
type calls struct {
	node *node
	ctx  context.Context

	mu sync.Mutex
	// byPod has the calls that are running, and those that failed until the failure is reported or the
	// Pod is gone.
	byPod map[types.UID]*call
}

// call is a call that is running or has failed. The zero call stands for none.
type call struct {
	// isUnprepare says that claims are unprepared, not prepared.
	isUnprepare bool
	isRunning   bool
	cancel      context.CancelFunc
	err         error
	ended       time.Time
}

// beginUnprepare asks drivers in the background to unprepare the claims of a Pod, in the given order. If
// a call to prepare them is still running, as for a Pod that was just deleted, it is cancelled instead,
// and the Pod is requeued when that call ends.
func (c *calls) beginUnprepare(pod types.UID, order []types.NamespacedName, ended func()) {
	c.beginCall(pod, &call{isUnprepare: true}, func(ctx context.Context) error { return c.unprepareClaims(ctx, pod, order) }, ended)
}

// beginCall makes a call in the background, unless one is running for the Pod, and calls ended after it.
func (c *calls) beginCall(pod types.UID, now *call, ask func(context.Context) error, ended func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.byPod[pod]; known != nil && known.isRunning || c.ctx.Err() != nil {
		if known != nil && now.isUnprepare && !known.isUnprepare {
			known.cancel()
		}
		return
	}
	ctx, cancel := context.WithCancel(c.ctx)
	now.isRunning, now.cancel = true, cancel
	c.byPod[pod] = now
	c.node.lifetime.running.Go(func() {
		defer cancel()
		err := ask(ctx)
		c.mu.Lock()
		now.isRunning, now.err, now.ended = false, err, time.Now()
		if err == nil {
			delete(c.byPod, pod)
		}
		c.mu.Unlock()
		ended()
	})
}

// lastCall returns the call that is running for a Pod, or has failed without a report.
func (c *calls) lastCall(pod types.UID) call {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.byPod[pod]; known != nil {
		return *known
	}
	return call{}
}

// forgetReported forgets the failed call that a reported error stems from, so that the drivers are asked again.
// Either error may wrap the other: a plan makes a failure of the call's error, or takes the one inside it.
func (c *calls) forgetReported(pod types.UID, reported error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.byPod[pod]; known != nil && !known.isRunning && (errors.Is(reported, known.err) || errors.Is(known.err, reported)) {
		delete(c.byPod, pod)
	}
}

// releaseGonePods asks drivers to unprepare the claims of deleted Pods, like reconcileLoop in
// pkg/kubelet/cm/dra.
func (c *calls) releaseGonePods() {
	users, present := c.node.claims.Pods(), sets.New[types.UID]()
	if users.Len() == 0 && c.isEmpty() || !c.node.isOwned() {
		return
	}
	for _, pod := range c.node.Caches.Pods.On(c.node.name) {
		present.Insert(pod.UID)
	}
	c.forgetFailedCalls(users.Union(present))
	for pod := range users.Difference(present) {
		last := c.lastCall(pod)
		isReleasing := last.isUnprepare && (last.isRunning || time.Since(last.ended) < releaseRetryInterval)
		if !isReleasing && !c.hasConsumer(pod) {
			c.beginUnprepare(pod, nil, func() {})
		}
	}
}

func (c *calls) isEmpty() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.byPod) == 0
}

// forgetFailedCalls forgets failed calls of all Pods but the given ones.
func (c *calls) forgetFailedCalls(keep sets.Set[types.UID]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.byPod, func(pod types.UID, known *call) bool { return !known.isRunning && !keep.Has(pod) })
}

// prepareClaims asks the drivers of claims to prepare them, in one call per driver, like
// prepareResources in pkg/kubelet/cm/dra.
func (c *calls) prepareClaims(ctx context.Context, pod types.UID, claims []claiminfo.Claim) error {
	unprepared, err := c.node.claims.Join(pod, claims)
	if err != nil {
		return err
	}
	byDriver := map[string]batch{}
	for _, claim := range unprepared {
		for driver, state := range claim.Drivers {
			if state.Skips(resourcev1.SkipNodeOperationNodePrepareResources) {
				continue
			}
			b := byDriver[driver]
			b.claims = append(b.claims, claim)
			b.messages = append(b.messages, &drav1.Claim{Namespace: claim.Namespace, Name: claim.Name, Uid: string(claim.UID)})
			byDriver[driver] = b
		}
	}
	for _, driver := range sets.List(sets.KeySet(byDriver)) {
		if err := c.prepareBatch(ctx, driver, byDriver[driver]); err != nil {
			return err
		}
	}
	return c.node.claims.SetPrepared(unprepared)
}

// batch is what one driver is asked to prepare.
type batch struct {
	claims   []claiminfo.Claim
	messages []*drav1.Claim
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

// unprepareClaims asks drivers to unprepare the claims that a Pod is the last user of, in one call per
// driver, like unprepareResources in pkg/kubelet/cm/dra.
func (c *calls) unprepareClaims(ctx context.Context, pod types.UID, order []types.NamespacedName) error {
	last := c.node.claims.Leave(pod)
	slices.SortStableFunc(last, func(a, b claiminfo.Info) int {
		return slices.Index(order, a.Key()) - slices.Index(order, b.Key())
	})
	byDriver := map[string][]*drav1.Claim{}
	for i := range last {
		for driver, state := range last[i].DriverState {
			if !state.Skips(resourcev1.SkipNodeOperationNodeUnprepareResources) {
				byDriver[driver] = append(byDriver[driver], &drav1.Claim{Namespace: last[i].Namespace, Name: last[i].ClaimName, Uid: string(last[i].ClaimUID)})
			}
		}
	}
	var err error
	for _, driver := range sets.List(sets.KeySet(byDriver)) {
		if err = c.unprepareBatch(ctx, driver, byDriver[driver]); err != nil {
			klog.FromContext(ctx).V(2).Info("Failed to unprepare the claims of the pod; retrying", "podUID", pod, "err", err)
			break
		}
	}
	return c.node.claims.SetUnprepared(last, err)
}

func (c *calls) unprepareBatch(ctx context.Context, driver string, claims []*drav1.Claim) error {
	switch c.node.stages.pluginState() {
	case lifecycle.PluginSilent:
		return plan.Unavailable(plan.CallUnprepare, driver)
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

// hasConsumer reports whether a claim on the node is reserved for a running Pod with that UID. The Pod need not name the claim.
func (c *calls) hasConsumer(pod types.UID) bool {
	caches := c.node.Caches
	return slices.ContainsFunc(caches.Claims.On(c.node.name), func(claim *observe.Claim) bool {
		return slices.ContainsFunc(caches.Pods.Consumers(claim.Decode()), func(consumer *corev1.Pod) bool { return consumer.UID == pod })
	})
}
