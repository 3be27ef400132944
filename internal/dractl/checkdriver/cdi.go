package checkdriver

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kwok-dra/kwok-dra/internal/extensions/containerview/cdi"
)

var cdiStatements = []statement{
	{"cdi-names", "names CDI devices as vendor/class=name", fromCDI, func(ctx context.Context, w *world) error {
		_, ids, err := w.prepareWithCDI(ctx)
		if err != nil {
			return err
		}
		var errs []error
		for _, id := range ids {
			if !cdiName.MatchString(id) {
				errs = append(errs, fmt.Errorf("CDI device %q is not of the form vendor/class=name", id))
			}
		}
		return errors.Join(errs...)
	}},
	{"cdi-resolves", "has a CDI spec with each device that it names", fromCDI, func(ctx context.Context, w *world) error {
		_, ids, err := w.prepareWithCDI(ctx)
		if err != nil {
			return err
		}
		specs, err := cdi.Read("/", w.cdiFolder()) // a driver on a kubelet may link them anywhere
		if err != nil {
			return err
		}
		return specs.Check(ids)
	}},
	// The specs that the driver has for all claims are there before.
	{"cdi-removed", "removes the CDI specs of a claim that it unprepares", fromUnprepare, func(ctx context.Context, w *world) error {
		before, err := cdi.Files(w.cdiFolder())
		if err != nil {
			return err
		}
		prepared, _, err := w.prepareWithCDI(ctx)
		if err != nil {
			return err
		}
		if err := w.unprepareClaims(ctx, prepared); err != nil {
			return err
		}
		now, err := cdi.Files(w.cdiFolder())
		if err != nil {
			return err
		}
		if left := sets.List(now.Difference(before)); len(left) > 0 {
			return fmt.Errorf("after claim %s was unprepared, there is still %s", prepared.Name, filepath.Base(left[0]))
		}
		return nil
	}},
}

// cdiName is the form of the name of a CDI device: vendor/class=name.
var cdiName = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_.-]*[A-Za-z0-9])?/[A-Za-z]([A-Za-z0-9_.-]*[A-Za-z0-9])?=[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?$`)

// prepareWithCDI prepares a claim, and returns it with the CDI devices in the answer.
func (w *world) prepareWithCDI(ctx context.Context) (*resourcev1.ResourceClaim, []string, error) {
	claims, found, err := w.prepareNewClaims(ctx, 1)
	if err != nil {
		return nil, nil, err
	}
	ids := found.cdiDevicesOf(claims[0].UID)
	if len(ids) == 0 {
		return nil, nil, skipped("the driver names no CDI devices")
	}
	return claims[0], ids, nil
}
