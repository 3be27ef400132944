package story

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// clearedKinds are in the order in which Clear deletes their objects: claims can go after their Pods.
var clearedKinds = []string{
	"Pod", "PodGroup", "ResourceClaim", "ResourceClaimTemplate", "ResourceQuota", "DeviceTaintRule", "ResourceSlice", "DeviceClass", "Node", "PriorityClass",
}

// LeftoverError says what of a story may be left, and how to delete it.
type LeftoverError struct {
	// ID is that of the story.
	ID string
	// Resources are what kubectl calls the kinds that have to be deleted.
	Resources []string
	// Err is why objects may be left.
	Err error
}

func (e *LeftoverError) Error() string {
	return fmt.Sprintf("story %s may have left objects: %v: delete them with\n  kubectl delete %s -l %s=%s", e.ID, e.Err, strings.Join(e.Resources, ","), Label, e.ID)
}

func (e *LeftoverError) Unwrap() error { return e.Err }

// Clear deletes all that has the story's ID, and returns when it is gone. Only the namespace may go later. It goes on after a kind
// that it cannot delete, and returns a LeftoverError in the end.
func (p *Player) Clear(ctx context.Context, s *Story) error {
	versions := map[string]string{}
	for i := range s.Steps {
		for _, object := range s.Steps[i].Create {
			ref := refTo(object)
			versions[ref.Kind] = ref.APIVersion
		}
	}
	if versions["Pod"] != "" { // the controller and the scheduler make claims for Pods
		versions["ResourceClaim"] = resourceVersion
	}
	var errs []error
	for _, kind := range clearedKinds {
		if versions[kind] == "" {
			continue
		}
		if err := p.clearKind(ctx, s, Ref{APIVersion: versions[kind], Kind: kind}); err != nil {
			errs = append(errs, fmt.Errorf("delete %s objects: %w", kind, err))
		}
	}
	err := p.await(ctx, func(ctx context.Context) error {
		err := p.client.CoreV1().Namespaces().Delete(ctx, s.ID, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // it is gone, or goes
			return nil
		}
		return finalIfRefused(err)
	})
	if err != nil {
		errs = append(errs, fmt.Errorf("delete namespace: %w", err))
	}
	if len(errs) == 0 {
		return nil
	}
	return &LeftoverError{ID: s.ID, Resources: s.clusterResources(), Err: errors.Join(errs...)}
}

// clearKind deletes objects of a kind until none is left. Of claims that a broken scheduler has never released it
// removes the finalizers in the end.
func (p *Player) clearKind(ctx context.Context, s *Story, ref Ref) error {
	client := p.clientFor(s, ref)
	selected := metav1.ListOptions{LabelSelector: Label + "=" + s.ID}
	if kinds[ref.Kind].isNamespaced {
		selected = metav1.ListOptions{}
	}
	deleteAll := func(ctx context.Context) error {
		if err := client.DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}, selected); err != nil {
			return finalIfRefused(err)
		}
		left, err := client.List(ctx, selected)
		if err != nil {
			return finalIfRefused(err)
		}
		if len(left.Items) > 0 {
			return fmt.Errorf("%s is still there", left.Items[0].GetName())
		}
		return nil
	}
	err := p.await(ctx, deleteAll)
	if err == nil || ref.Kind != "ResourceClaim" || ctx.Err() != nil {
		return err
	}
	return p.await(ctx, func(ctx context.Context) error {
		if err := removeFinalizers(ctx, client); err != nil {
			return finalIfRefused(err)
		}
		return deleteAll(ctx)
	})
}

// finalIfRefused makes an error final that no other try changes: the user has no right to the request, or the API server has no
// such kind.
func finalIfRefused(err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		return finalError{err}
	}
	return err
}

func removeFinalizers(ctx context.Context, client dynamic.ResourceInterface) error {
	left, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range left.Items {
		name := left.Items[i].GetName()
		if _, err := client.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`), metav1.PatchOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("remove the finalizers of %s: %w", name, err)
		}
	}
	return nil
}
