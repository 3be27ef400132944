package claims

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	resourcev1ac "k8s.io/client-go/applyconfigurations/resource/v1"

	"github.com/kwok-dra/kwok-dra/pkg/cached"
)

// The field managers of kwok-dra in ResourceClaims. Binding conditions have one
// of their own: they are set before the claim is prepared, and stay then.
const (
	fieldManager   = "kwok-dra"
	bindingManager = "kwok-dra-binding"
)

// applyEntries makes the entries a field manager's only ones in a claim. Entries
// of others are not touched. The UID keeps it from another claim of that name, and
// the resource version from a claim that has changed since it was looked at: another
// replica may have written it, or new Pods use it. The state keeps what the API server
// says, so that the next look has it also where the cache is late.
func (p *Preparer) applyEntries(ctx context.Context, state *claimState, manager string, claim *resourcev1.ResourceClaim, entries []resourcev1.AllocatedDeviceStatus) error {
	now := metav1.Now()
	status := resourcev1ac.ResourceClaimStatus()
	for i := range entries {
		status.WithDevices(applyEntry(claim, &entries[i], now))
	}
	config := resourcev1ac.ResourceClaim(claim.Name, claim.Namespace).WithUID(claim.UID).WithResourceVersion(claim.ResourceVersion).WithStatus(status)
	stored, err := p.client.ResourceV1().ResourceClaims(claim.Namespace).ApplyStatus(ctx, config, metav1.ApplyOptions{FieldManager: manager, Force: true})
	if apierrors.IsConflict(err) {
		p.refresh(ctx, state, claim)
	}
	if err != nil {
		return err
	}
	state.answer = slimClaim(stored)
	return nil
}

// refresh reads a claim whose known version is out of date. Where it cannot be read,
// the next try waits for the cache.
func (p *Preparer) refresh(ctx context.Context, state *claimState, claim *resourcev1.ResourceClaim) {
	live, err := p.client.ResourceV1().ResourceClaims(claim.Namespace).Get(ctx, claim.Name, metav1.GetOptions{})
	if err == nil && live.UID == claim.UID {
		state.answer = slimClaim(live)
	}
}

func applyEntry(claim *resourcev1.ResourceClaim, entry *resourcev1.AllocatedDeviceStatus, now metav1.Time) *resourcev1ac.AllocatedDeviceStatusApplyConfiguration {
	config := resourcev1ac.AllocatedDeviceStatus().WithDriver(entry.Driver).WithPool(entry.Pool).WithDevice(entry.Device)
	if entry.ShareID != nil {
		config.WithShareID(*entry.ShareID)
	}
	for _, condition := range entry.Conditions {
		config.WithConditions(metav1ac.Condition().
			WithType(condition.Type).
			WithStatus(condition.Status).
			WithReason(condition.Reason).
			WithMessage(condition.Message).
			WithLastTransitionTime(since(claim, entryID(entry), condition, now)))
	}
	if entry.Data != nil {
		config.WithData(*entry.Data)
	}
	if network := entry.NetworkData; network != nil {
		config.WithNetworkData(&resourcev1ac.NetworkDeviceDataApplyConfiguration{
			InterfaceName: notEmpty(network.InterfaceName), IPs: network.IPs, HardwareAddress: notEmpty(network.HardwareAddress),
		})
	}
	return config
}

func notEmpty(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// write brings a claim to what is wanted. Pods that share a claim write it one
// after the other, so the second finds it written.
func (p *Preparer) write(ctx context.Context, a *attempt, want *desired) error {
	state := p.states.claim(want.claim.UID)
	state.Lock()
	defer state.Unlock()
	state.unused = time.Time{}
	want.claim = p.latest(state, want.claim)
	if want.namesPods && want.claim.Status.Allocation != nil {
		renewed, err := p.desire(a, want.claim) // other Pods may have joined since it was planned
		if err != nil {
			return failed(reasonTemplate, "NodePrepareResources failed for ResourceClaim %s: %w", want.claim.Name, err)
		}
		want = renewed
	}
	if err := p.writeLocked(ctx, state, want); err != nil {
		return err
	}
	p.use(a, []*resourcev1.ResourceClaim{want.claim})
	return nil
}

// writeLocked writes unless the claim shows already what is wanted.
func (p *Preparer) writeLocked(ctx context.Context, state *claimState, want *desired) error {
	if want.claim.Status.Allocation == nil || want.shows() {
		return nil
	}
	err := p.applyEntries(ctx, state, fieldManager, want.claim, want.entries)
	p.metrics.wroteClaim("prepare", err)
	if err != nil {
		return fmt.Errorf("prepare ResourceClaim %s: %w", keyOf(want.claim), err)
	}
	state.node = nodeOf(want.claim)
	return nil
}

// latest returns the newest known version of a claim. What was read before the
// state was locked may be out of date by now, as may be the cache: then the API
// server's answer to the last write is newer.
func (p *Preparer) latest(state *claimState, claim *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	seen := p.observedClaim(keyOf(claim))
	if seen != nil && seen.UID == claim.UID && cached.Older(claim.ResourceVersion, seen.ResourceVersion) {
		claim = seen.Decode()
	}
	if state.answer == nil {
		return claim
	}
	claim = newer(claim, state.answer)
	if seen != nil && !cached.Older(seen.ResourceVersion, state.answer.ResourceVersion) {
		state.answer = nil
	}
	return claim
}

func newer(a, b *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	if cached.Older(a.ResourceVersion, b.ResourceVersion) {
		return b
	}
	return a
}

// withdraw takes a field manager's entries away.
func (p *Preparer) withdraw(ctx context.Context, state *claimState, manager string, claim *resourcev1.ResourceClaim) error {
	err := p.applyEntries(ctx, state, manager, claim, nil)
	p.metrics.wroteClaim("withdraw", err)
	if err != nil {
		return fmt.Errorf("withdraw from ResourceClaim %s: %w", keyOf(claim), err)
	}
	return nil
}

// patchStatus writes a part of a Pod's status, and returns the Pod as it is then.
func (p *Preparer) patchStatus(ctx context.Context, a *attempt, operation string, status corev1.PodStatus) error {
	patch, err := newStatusPatch(a.pod, status)
	if err != nil {
		return err
	}
	return p.patchPod(ctx, a, operation, types.StrategicMergePatchType, patch)
}

func (p *Preparer) patchPod(ctx context.Context, a *attempt, operation string, kind types.PatchType, patch []byte) error {
	stored, err := p.client.CoreV1().Pods(a.pod.Namespace).Patch(ctx, a.pod.Name, kind, patch, metav1.PatchOptions{}, "status")
	p.metrics.wrotePod(operation, err)
	if err != nil {
		return fmt.Errorf("write status of pod %s: %w", a.key, err)
	}
	stored.ManagedFields = nil
	a.state.written = stored.ResourceVersion
	a.see(stored)
	return nil
}
