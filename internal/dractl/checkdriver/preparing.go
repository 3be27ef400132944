package checkdriver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	resourcev1 "k8s.io/api/resource/v1"
)

var prepareStatements = []statement{
	{"prepare-answers", "answers with devices of the allocation only", fromProto, func(ctx context.Context, w *world) error {
		claims, found, err := w.prepareNewClaims(ctx, 1)
		if err != nil {
			return err
		}
		return checkAllocated(w.driver, claims[0], found[claims[0].UID])
	}},
	{"prepare-twice", "gives the same answer to the same claim", fromPrepare, func(ctx context.Context, w *world) error {
		claims, before, err := w.prepareNewClaims(ctx, 1)
		if err != nil {
			return err
		}
		return w.prepareAgain(ctx, claims[0], before)
	}},
	{"prepare-batch", "prepares two claims in one call", fromProto, func(ctx context.Context, w *world) error {
		claims, _, err := w.prepareNewClaims(ctx, 2)
		if err != nil {
			return err
		}
		return w.unprepareClaims(ctx, claims...)
	}},
	{"prepare-concurrent", "prepares claims in calls at the same time", fromKEP, func(ctx context.Context, w *world) error {
		free, err := w.awaitDevices(ctx)
		if err != nil {
			return err
		}
		claims, err := w.createClaims(ctx, max(2, min(several, len(free))))
		if err != nil {
			return err
		}
		called, err := w.kubelet.Get(w.driver)
		if err != nil {
			return err
		}
		errs := make([]error, len(claims))
		var calls sync.WaitGroup
		for i := range claims {
			w.prepared[claims[i].UID] = claimMessage(claims[i])
			calls.Go(func() { _, errs[i] = callPrepare(ctx, called, claims[i:i+1]) })
		}
		calls.Wait()
		return errors.Join(errs...)
	}},
	// The call may fail as a whole, as that of the kubeletplugin package does: the kubelet then asks again.
	{"prepare-missing", "fails for a claim that does not exist, after which others can be prepared", fromProto, func(ctx context.Context, w *world) error {
		claims, err := w.createClaims(ctx, 2)
		if err != nil {
			return err
		}
		there, missing := claims[0], claims[1]
		if err := w.deleteClaim(ctx, missing); err != nil {
			return err
		}
		called, err := w.kubelet.Get(w.driver)
		if err != nil {
			return err
		}
		w.prepared[there.UID] = claimMessage(there)
		response, err := called.Prepare(ctx, claimMessages(claims))
		answer, ok := response.GetClaims()[string(missing.UID)]
		if err == nil && ok && answer.GetError() == "" {
			return fmt.Errorf("claim %s does not exist, and was prepared", missing.Name)
		}
		if _, err := w.prepareClaims(ctx, there); err != nil {
			return fmt.Errorf("after a call with a claim that does not exist: %w", err)
		}
		return nil
	}},
	{"prepare-recreated", "prepares a claim with the name of an earlier one as a new one", fromKEP, func(ctx context.Context, w *world) error {
		claims, _, err := w.prepareNewClaims(ctx, 1)
		if err != nil {
			return err
		}
		if err := errors.Join(w.unprepareClaims(ctx, claims[0]), w.deleteClaim(ctx, claims[0])); err != nil {
			return err
		}
		claims, _, err = w.prepareNewClaims(ctx, 1)
		if err != nil {
			return fmt.Errorf("with another UID: %w", err)
		}
		return w.unprepareClaims(ctx, claims[0])
	}},
	// The scheduler never allocates a device twice; here it is as if it had.
	{"prepare-taken", "refuses to prepare a device that is prepared for another claim", fromPrepare, func(ctx context.Context, w *world) error {
		free, err := w.awaitDevices(ctx)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(free, func(d device) bool { return w.shared[d] == nil })
		if i < 0 {
			return skipped("needs a device that claims cannot share: the driver publishes none")
		}
		claims, err := w.createClaimsFor(ctx, free[i], free[i])
		if err != nil {
			return err
		}
		if _, err := w.prepareClaims(ctx, claims[0]); err != nil {
			return err
		}
		if _, err := w.prepareClaims(ctx, claims[1]); err == nil {
			return fmt.Errorf("device %s is prepared for claim %s, and was prepared for claim %s too", free[i], claims[0].Name, claims[1].Name)
		}
		return w.process.Err()
	}},
}

// several is how many claims are prepared at the same time, if there are enough devices.
const several = 4

// prepareAgain prepares a claim that is prepared already, and compares the answers.
func (w *world) prepareAgain(ctx context.Context, claim *resourcev1.ResourceClaim, before answers) error {
	now, err := w.prepareClaims(ctx, claim)
	if err != nil {
		return fmt.Errorf("prepare again: %w", err)
	}
	if was, is := before.describeDevices(claim.UID), now.describeDevices(claim.UID); was != is {
		return fmt.Errorf("claim %s: first %s, then %s", claim.Name, was, is)
	}
	return nil
}
