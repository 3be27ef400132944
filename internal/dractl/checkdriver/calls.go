package checkdriver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"

	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/plugin"
)

// answers are the devices of each claim, as lines in a fixed order.
type answers map[types.UID][]*drav1.Device

// describeDevices returns the devices of a claim, comparable.
func (a answers) describeDevices(claim types.UID) string {
	var lines []string
	for _, d := range a[claim] {
		lines = append(lines, fmt.Sprintf("%s/%s for %v as %v share %q", d.GetPoolName(), d.GetDeviceName(), d.GetRequestNames(), d.GetCdiDeviceIds(), d.GetShareId()))
	}
	slices.Sort(lines)
	return strings.Join(lines, "; ")
}

// cdiDevicesOf are the CDI devices of a claim.
func (a answers) cdiDevicesOf(claim types.UID) []string {
	var ids []string
	for _, d := range a[claim] {
		ids = append(ids, d.GetCdiDeviceIds()...)
	}
	return ids
}

// claimMessage names a claim to a driver.
func claimMessage(claim *resourcev1.ResourceClaim) *drav1.Claim {
	return &drav1.Claim{Namespace: claim.Namespace, Name: claim.Name, Uid: string(claim.UID)}
}

func claimMessages(claims []*resourcev1.ResourceClaim) []*drav1.Claim {
	all := make([]*drav1.Claim, len(claims))
	for i, claim := range claims {
		all[i] = claimMessage(claim)
	}
	return all
}

// prepareClaims has the driver prepare claims in one call, all of which must succeed.
func (w *world) prepareClaims(ctx context.Context, claims ...*resourcev1.ResourceClaim) (answers, error) {
	for _, claim := range claims {
		w.prepared[claim.UID] = claimMessage(claim) // or half of it
	}
	called, err := w.kubelet.Get(w.driver)
	if err != nil {
		return nil, err
	}
	return callPrepare(ctx, called, claims)
}

// callPrepare makes the call, and checks the answer as the kubelet does.
func callPrepare(ctx context.Context, called *plugin.Plugin, claims []*resourcev1.ResourceClaim) (answers, error) {
	response, err := called.Prepare(ctx, claimMessages(claims))
	if err != nil {
		return nil, fmt.Errorf("NodePrepareResources: %w", err)
	}
	found := answers{}
	for _, claim := range claims {
		answer, ok := response.GetClaims()[string(claim.UID)]
		switch {
		case !ok:
			return nil, fmt.Errorf("NodePrepareResources has no answer for claim %s", claim.Name)
		case answer.GetError() != "":
			return nil, fmt.Errorf("NodePrepareResources failed for claim %s: %s", claim.Name, answer.GetError())
		}
		found[claim.UID] = answer.GetDevices()
	}
	if len(response.GetClaims()) > len(claims) {
		return nil, fmt.Errorf("NodePrepareResources has answers for %d claims, and was given %d", len(response.GetClaims()), len(claims))
	}
	return found, nil
}

// prepareNewClaims has the driver prepare so many new claims in one call.
func (w *world) prepareNewClaims(ctx context.Context, count int) ([]*resourcev1.ResourceClaim, answers, error) {
	claims, err := w.createClaims(ctx, count)
	if err != nil {
		return nil, nil, err
	}
	found, err := w.prepareClaims(ctx, claims...)
	return claims, found, err
}

// unprepareClaims has the driver unprepare claims in one call, all of which must succeed.
func (w *world) unprepareClaims(ctx context.Context, claims ...*resourcev1.ResourceClaim) error {
	called, err := w.kubelet.Get(w.driver)
	if err != nil {
		return err
	}
	response, err := called.Unprepare(ctx, claimMessages(claims))
	if err != nil {
		return fmt.Errorf("NodeUnprepareResources: %w", err)
	}
	for _, claim := range claims {
		answer, ok := response.GetClaims()[string(claim.UID)]
		switch {
		case !ok:
			return fmt.Errorf("NodeUnprepareResources has no answer for claim %s", claim.Name)
		case answer.GetError() != "":
			return fmt.Errorf("NodeUnprepareResources failed for claim %s: %s", claim.Name, answer.GetError())
		}
		delete(w.prepared, claim.UID)
	}
	return nil
}

// checkAllocated returns an error for devices in the answer for a claim that are not allocated for it.
func checkAllocated(driver string, claim *resourcev1.ResourceClaim, found []*drav1.Device) error {
	var errs []error
	for _, d := range found {
		results := claim.Status.Allocation.Devices.Results
		if !slices.ContainsFunc(results, func(result resourcev1.DeviceRequestAllocationResult) bool {
			return result.Driver == driver && result.Pool == d.GetPoolName() && result.Device == d.GetDeviceName()
		}) {
			errs = append(errs, fmt.Errorf("claim %s: device %s/%s is not allocated for it", claim.Name, d.GetPoolName(), d.GetDeviceName()))
		}
		for _, name := range d.GetRequestNames() {
			if name != request {
				errs = append(errs, fmt.Errorf("claim %s: device %s is for request %q, which it does not have", claim.Name, d.GetDeviceName(), name))
			}
		}
	}
	return errors.Join(errs...)
}
