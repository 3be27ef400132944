package resourceslice

import (
	"context"
	"errors"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	resourceclient "k8s.io/client-go/kubernetes/typed/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/controller/expectations"
	"github.com/kwok-dra/kwok-dra/internal/controller/installation"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice/plan"
)

// writer writes slices. It knows which of its writes the cache has not seen.
type writer struct {
	client       resourceclient.ResourceSliceInterface
	as           installation.ID
	metrics      *metrics
	expectations *expectations.Expectations[facts.SlicesKey, string]
	requeue      func(key facts.SlicesKey)
}

func newWriter(client kubernetes.Interface, as installation.ID, metrics *metrics, requeue func(facts.SlicesKey)) *writer {
	return &writer{
		client:       client.ResourceV1().ResourceSlices(),
		as:           as,
		metrics:      metrics,
		expectations: expectations.New[facts.SlicesKey, string](),
		requeue:      requeue,
	}
}

// applyWrites makes the writes for a key in their order, one API call each.
func (w *writer) applyWrites(ctx context.Context, key facts.SlicesKey, writes *plan.Writes) error {
	for _, existing := range writes.Delete {
		if err := w.deleteSlice(ctx, key, existing); err != nil {
			return err
		}
	}
	for i := range writes.Update {
		if err := w.updateSlice(ctx, key, &writes.Update[i]); err != nil {
			return err
		}
	}
	for _, slice := range writes.Create {
		if err := w.createSlice(ctx, key, slice); err != nil {
			return err
		}
	}
	return nil
}

// deleteSlice deletes a slice, unless it has changed or been replaced since. The key waits
// until the cache has seen that, or the slice would be deleted again.
func (w *writer) deleteSlice(ctx context.Context, key facts.SlicesKey, existing *facts.Slice) error {
	w.expectations.Expect(key, existing.GetName())
	err := w.client.Delete(ctx, existing.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{
		UID:             &existing.UID,
		ResourceVersion: &existing.ResourceVersion,
	}})
	w.metrics.countWrite("delete", err)
	if err != nil {
		w.noteAnswer(key, existing.GetName(), "")
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete slice %s: %w", existing.GetName(), err)
	}
	return nil
}

// sendWrite makes one call, notes what the cache has to see of it, and checks that the API server
// stored what it was sent. A call that leaves the resource version as it was before has
// changed nothing, and brings no event to wait for.
func (w *writer) sendWrite(verb string, key facts.SlicesKey, slice *resourcev1.ResourceSlice, before string, call func() (*resourcev1.ResourceSlice, error)) error {
	w.expectations.Expect(key, slice.Name)
	stored, err := call()
	w.metrics.countWrite(verb, err)
	if err != nil {
		w.noteAnswer(key, slice.Name, "")
		return fmt.Errorf("%s slice %s: %w", verb, slice.Name, err)
	}
	version := stored.ResourceVersion
	if version == before {
		version = ""
	}
	w.noteAnswer(key, slice.Name, version)
	return checkStored(slice, stored)
}

// checkStored guards against a server, or an admission plugin, that stores something else.
// Without it the slice would be written again and again.
func checkStored(sent, stored *resourcev1.ResourceSlice) error {
	if facts.ContentOf(&stored.Spec) != facts.ContentOf(&sent.Spec) {
		return fmt.Errorf("publish slice %s: %w", sent.Name, errStored)
	}
	return nil
}

// noteAnswer notes the resource version that a write has led to, or none.
func (w *writer) noteAnswer(key facts.SlicesKey, slice, version string) {
	if w.expectations.Answered(key, slice, version) {
		w.requeue(key)
	}
}

// errStored is the error of a write whose result differs: an admission plugin has changed it.
var errStored = errors.New("the API server stored something else than it was sent; look for admission plugins that change ResourceSlices")

func (w *writer) updateSlice(ctx context.Context, key facts.SlicesKey, update *plan.Update) error {
	patch, err := update.Patch()
	if err != nil {
		return fmt.Errorf("update slice %s: %w", update.Slice.Name, err)
	}
	return w.sendWrite("update", key, update.Slice, update.Existing.ResourceVersion, func() (*resourcev1.ResourceSlice, error) {
		return w.client.Patch(ctx, update.Slice.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	})
}

// createSlice creates a slice, or adopts one of an earlier generation.
func (w *writer) createSlice(ctx context.Context, key facts.SlicesKey, slice *resourcev1.ResourceSlice) error {
	refused := w.sendWrite("create", key, slice, "", func() (*resourcev1.ResourceSlice, error) {
		return w.client.Create(ctx, slice, metav1.CreateOptions{})
	})
	if !apierrors.IsAlreadyExists(refused) {
		return refused
	}
	live, err := w.getSlice(ctx, key, slice.Name)
	if err != nil {
		return err
	}
	if live == nil || live.Spec.Pool.Generation >= slice.Spec.Pool.Generation {
		return fmt.Errorf("create slice %s in generation %d: %w", slice.Name, slice.Spec.Pool.Generation, errors.Unwrap(refused))
	}
	return w.updateSlice(ctx, key, plan.Adopt(slice, live))
}

// getSlice reads a slice that is to be taken over, or nil if it does not exist. One of a pool
// that nodes share may belong to another installation.
func (w *writer) getSlice(ctx context.Context, key facts.SlicesKey, name string) (*resourcev1.ResourceSlice, error) {
	live, err := w.client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("take over slice %s: %w", name, err)
	}
	if owner := installation.Of(live); key.IsShared() && w.as.IsAnother(owner) {
		return nil, &installation.OwnedError{Object: "slice " + name, Resource: "resourceslices " + name, Owner: owner, As: w.as}
	}
	return live, nil
}
