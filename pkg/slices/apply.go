package slices

import (
	"context"
	"encoding/json"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/pkg/cached"
)

// apply makes the writes for a scope, one API call each.
func (p *Publisher) apply(ctx context.Context, of scope, writes Writes) error {
	for _, existing := range writes.Delete {
		if err := p.delete(ctx, of, existing); err != nil {
			return err
		}
	}
	for _, update := range writes.Update {
		err := p.write(of, update.Slice, func() (*resourcev1.ResourceSlice, error) {
			return p.update(ctx, update)
		})
		if err != nil {
			return err
		}
	}
	for _, slice := range writes.Create {
		err := p.write(of, slice, func() (*resourcev1.ResourceSlice, error) {
			return p.create(ctx, slice)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// write does one write, keeps the account of it, and checks that the server
// stored what it was sent.
func (p *Publisher) write(of scope, slice *resourcev1.ResourceSlice, call func() (*resourcev1.ResourceSlice, error)) error {
	p.pending.begin(of, slice.Name)
	stored, err := call()
	version := ""
	if err == nil {
		version = stored.ResourceVersion
	}
	if p.pending.end(of, slice.Name, version) {
		p.loop.Add(of)
	}
	if err != nil {
		return err
	}
	return checkStored(slice, stored)
}

// storedOtherwise is the error of a slice of which the API server has stored
// something else than it was sent.
type storedOtherwise struct{ error }

// checkStored guards against a server, or an admission plugin, that stores
// something else. Without it the slice would be written again and again.
func checkStored(sent, stored *resourcev1.ResourceSlice) error {
	want, err := ContentOf(&sent.Spec)
	if err != nil {
		return err
	}
	got, err := ContentOf(&stored.Spec)
	if err != nil {
		return err
	}
	if got != want {
		return storedOtherwise{fmt.Errorf("publish slice %s: the API server stored something else than it was sent; look for admission plugins that change ResourceSlices", sent.Name)}
	}
	return nil
}

// delete deletes a slice, unless it has changed or been replaced since. The
// scope waits until the cache has seen that, or the slice would be deleted again.
func (p *Publisher) delete(ctx context.Context, of scope, existing *Observed) error {
	p.pending.begin(of, existing.Name)
	err := p.client.Delete(ctx, existing.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{
		UID:             &existing.UID,
		ResourceVersion: &existing.ResourceVersion,
	}})
	p.metrics.wrote("delete", err)
	if err != nil && p.pending.end(of, existing.Name, "") {
		p.loop.Add(of)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete slice %s: %w", existing.Name, err)
	}
	return nil
}

// update replaces a slice's spec and restores its label. It is a patch, since the
// cache has too little for an update. Its resource version makes the API server
// refuse it if the slice has changed since.
func (p *Publisher) update(ctx context.Context, update Update) (*resourcev1.ResourceSlice, error) {
	patch, err := patchFor(update)
	if err != nil {
		return nil, fmt.Errorf("update slice %s: %w", update.Slice.Name, err)
	}
	stored, err := p.client.Patch(ctx, update.Slice.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	p.metrics.wrote("update", err)
	if err != nil {
		return nil, fmt.Errorf("update slice %s: %w", update.Slice.Name, err)
	}
	return stored, nil
}

// absent are the fields of a spec that a merge patch must name to remove them: the
// slice had them before, or someone has added them.
var absent = []string{
	"nodeSelector", "allNodes", "perDeviceNodeSelection", "devices", "sharedCounters", "partitionTypeAttribute", "skipNodeOperations",
}

func patchFor(update Update) ([]byte, error) {
	encoded, err := json.Marshal(update.Slice.Spec)
	if err != nil {
		return nil, fmt.Errorf("encode its spec: %w", err)
	}
	var spec map[string]json.RawMessage
	if err := json.Unmarshal(encoded, &spec); err != nil {
		return nil, fmt.Errorf("decode its spec: %w", err)
	}
	for _, name := range absent {
		if _, present := spec[name]; !present {
			spec[name] = json.RawMessage("null")
		}
	}
	labels, annotations := update.Existing.own.patch(update.Slice)
	metadata := map[string]any{
		"uid":             update.Existing.UID,
		"resourceVersion": update.Existing.ResourceVersion,
		"labels":          labels,
		"ownerReferences": update.Slice.OwnerReferences,
	}
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	return json.Marshal(map[string]any{"metadata": metadata, "spec": spec})
}

// create creates a slice. It adopts one of an earlier generation that exists already:
// someone has removed its label, so that the cache no longer has it.
func (p *Publisher) create(ctx context.Context, slice *resourcev1.ResourceSlice) (*resourcev1.ResourceSlice, error) {
	stored, refused := p.client.Create(ctx, slice, metav1.CreateOptions{})
	p.metrics.wrote("create", refused)
	if refused == nil {
		return stored, nil
	}
	if !apierrors.IsAlreadyExists(refused) {
		return nil, fmt.Errorf("create slice %s: %w", slice.Name, refused)
	}
	live, err := p.client.Get(ctx, slice.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("take over slice %s: %w", slice.Name, err)
	}
	if live.Spec.Pool.Generation >= slice.Spec.Pool.Generation {
		return nil, fmt.Errorf("create slice %s in generation %d: %w", slice.Name, slice.Spec.Pool.Generation, refused)
	}
	existing := &Observed{Meta: cached.MetaOf(live), own: ownLabelsOf(live)}
	slice.Spec.Devices = timesOf(live.Spec.Devices).on(slice.Spec.Devices)
	return p.update(ctx, Update{Existing: existing, Slice: slice})
}
