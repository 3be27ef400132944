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

	"github.com/kwok-dra/kwok-dra/pkg/expectations"
	"github.com/kwok-dra/kwok-dra/pkg/installation"
	"github.com/kwok-dra/kwok-dra/pkg/observe/facts"
	"github.com/kwok-dra/kwok-dra/pkg/resourceslice/plan"
)

// writer writes slices. It knows which of its writes the cache has not seen, and who
// else writes.
type writer struct {
	client       resourceclient.ResourceSliceInterface
	as           installation.ID
	metrics      *metrics
	expectations *expectations.Expectations[facts.SlicesKey, string]
	backoff      conflictBackoff
	requeue      func(key facts.SlicesKey)
}

func newWriter(client kubernetes.Interface, as installation.ID, metrics *metrics, requeue func(facts.SlicesKey)) *writer {
	return &writer{
		client:       client.ResourceV1().ResourceSlices(),
		as:           as,
		metrics:      metrics,
		expectations: expectations.New[facts.SlicesKey, string](),
		backoff:      newConflictBackoff(),
		requeue:      requeue,
	}
}

// apply makes the writes for a key.
func (w *writer) apply(ctx context.Context, key facts.SlicesKey, needs *plan.Plan) error {
	w.backoff.next(key)
	err := w.applyWrites(ctx, key, &needs.Writes)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	again, err := needs.TakeOver(func(name string) (*resourcev1.ResourceSlice, error) { return w.get(ctx, key, name) })
	if err != nil {
		return err
	}
	return w.applyWrites(ctx, key, &again.Writes)
}

// applyWrites makes the writes in their order, one API call each.
func (w *writer) applyWrites(ctx context.Context, key facts.SlicesKey, writes *plan.Writes) error {
	for _, existing := range writes.Delete {
		if err := w.delete(ctx, key, existing); err != nil {
			return err
		}
	}
	for i := range writes.Update {
		if err := w.update(ctx, key, &writes.Update[i]); err != nil {
			return err
		}
	}
	for _, slice := range writes.Create {
		if err := w.create(ctx, key, slice); err != nil {
			return err
		}
	}
	return nil
}

// delete deletes a slice, unless it has changed or been replaced since. The key waits
// until the cache has seen that, or the slice would be deleted again.
func (w *writer) delete(ctx context.Context, key facts.SlicesKey, existing *facts.Slice) error {
	w.expectations.Expect(key, existing.GetName())
	err := w.client.Delete(ctx, existing.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{
		UID:             &existing.UID,
		ResourceVersion: &existing.ResourceVersion,
	}})
	w.metrics.wrote("delete", err)
	if err != nil {
		w.answered(key, existing.GetName(), "")
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete slice %s: %w", existing.GetName(), err)
	}
	return nil
}

// write does one write, keeps the account of it, and checks that the server
// stored what it was sent. A write that leaves the resource version as it was before
// has changed nothing, and brings no event to wait for.
func (w *writer) write(verb string, key facts.SlicesKey, slice *resourcev1.ResourceSlice, before string, call func() (*resourcev1.ResourceSlice, error)) error {
	w.expectations.Expect(key, slice.Name)
	stored, err := call()
	w.metrics.wrote(verb, err)
	if err != nil {
		w.answered(key, slice.Name, "")
		return fmt.Errorf("%s slice %s: %w", verb, slice.Name, err)
	}
	version := stored.ResourceVersion
	if version == before {
		version = ""
	}
	w.answered(key, slice.Name, version)
	return checkStored(slice, stored)
}

func (w *writer) answered(key facts.SlicesKey, slice, version string) {
	if w.expectations.Answered(key, slice, version) {
		w.requeue(key)
	}
}

var errStored = errors.New("the API server stored something else than it was sent; look for admission plugins that change ResourceSlices")

// checkStored guards against a server, or an admission plugin, that stores
// something else. Without it the slice would be written again and again.
func checkStored(sent, stored *resourcev1.ResourceSlice) error {
	if facts.ContentOf(&stored.Spec) != facts.ContentOf(&sent.Spec) {
		return fmt.Errorf("publish slice %s: %w", sent.Name, errStored)
	}
	return nil
}

func (w *writer) update(ctx context.Context, key facts.SlicesKey, update *plan.Update) error {
	patch, err := update.Patch()
	if err != nil {
		return fmt.Errorf("update slice %s: %w", update.Slice.Name, err)
	}
	return w.write("update", key, update.Slice, update.Existing.ResourceVersion, func() (*resourcev1.ResourceSlice, error) {
		return w.client.Patch(ctx, update.Slice.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	})
}

// create creates a slice, or adopts one of an earlier generation.
func (w *writer) create(ctx context.Context, key facts.SlicesKey, slice *resourcev1.ResourceSlice) error {
	refused := w.write("create", key, slice, "", func() (*resourcev1.ResourceSlice, error) {
		return w.client.Create(ctx, slice, metav1.CreateOptions{})
	})
	if !apierrors.IsAlreadyExists(refused) {
		return refused
	}
	live, err := w.get(ctx, key, slice.Name)
	if err != nil {
		return err
	}
	if live == nil || live.Spec.Pool.Generation >= slice.Spec.Pool.Generation {
		return fmt.Errorf("create slice %s in generation %d: %w", slice.Name, slice.Spec.Pool.Generation, errors.Unwrap(refused))
	}
	return w.update(ctx, key, plan.Adopt(slice, live))
}

// get returns a slice that is to be taken over, or nil where there is none. One of a
// pool that nodes share may belong to another installation.
func (w *writer) get(ctx context.Context, key facts.SlicesKey, name string) (*resourcev1.ResourceSlice, error) {
	live, err := w.client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("take over slice %s: %w", name, err)
	}
	if owner := installation.Of(live); key.Shared() && w.as.IsAnother(owner) {
		return nil, &installation.OwnedError{Object: "slice " + name, Resource: "resourceslices " + name, Owner: owner, As: w.as}
	}
	return live, nil
}
