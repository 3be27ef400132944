package story

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// clearedKinds are in the order in which Clear deletes their objects: claims can go after their Pods.
var clearedKinds = []string{
	"Pod", "PodGroup", "ResourceClaim", "ResourceClaimTemplate", "ResourceQuota", "DeviceTaintRule", "ResourceSlice", "DeviceClass", "Node", "PriorityClass",
}

// Clear deletes all that has the story's ID, and returns when it is gone. Only the namespace may go later.
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
	for _, kind := range clearedKinds {
		if versions[kind] == "" {
			continue
		}
		ref := Ref{APIVersion: versions[kind], Kind: kind}
		if err := p.clearKind(ctx, s, ref); err != nil {
			return fmt.Errorf("clear story %s of its %s objects: %w", s.ID, kind, err)
		}
	}
	err := p.client.CoreV1().Namespaces().Delete(ctx, s.ID, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete namespace %s: %w", s.ID, err)
	}
	return nil
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
			return finalError{err}
		}
		left, err := client.List(ctx, selected)
		if err != nil {
			return finalError{err}
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
	if err := removeFinalizers(ctx, client); err != nil {
		return err
	}
	return p.await(ctx, deleteAll)
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
