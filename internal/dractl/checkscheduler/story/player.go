package story

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	// pollInterval is how often a condition is checked.
	pollInterval = 50 * time.Millisecond
	// DefaultPatience is how long a Player waits for what a controller has to do.
	DefaultPatience = 10 * time.Second
)

// Player applies the steps of stories to a cluster.
type Player struct {
	objects  dynamic.Interface
	client   kubernetes.Interface
	patience time.Duration
}

// NewPlayer makes one. Its client has no limit of its own.
func NewPlayer(config *rest.Config) (*Player, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &Player{objects: objects, client: client, patience: DefaultPatience}, nil
}

// Play applies the steps, and calls rest where one rests. It leaves the objects behind: Clear removes them.
func (p *Player) Play(ctx context.Context, s *Story, rest func(context.Context) error) error {
	for i := range s.Steps {
		step := &s.Steps[i]
		if err := p.applyStep(ctx, s, step); err != nil {
			return fmt.Errorf("story %s, step %d (%s): %w", s.ID, i+1, step.Say, err)
		}
		if !step.Rest {
			continue
		}
		if err := rest(ctx); err != nil {
			return fmt.Errorf("story %s, rest after step %d (%s): %w", s.ID, i+1, step.Say, err)
		}
	}
	return nil
}

func (p *Player) applyStep(ctx context.Context, s *Story, step *Step) error {
	for _, object := range step.Create {
		if err := p.createObject(ctx, s, object); err != nil {
			return err
		}
	}
	for _, object := range step.Replace {
		if err := p.replaceObject(ctx, s, object); err != nil {
			return err
		}
	}
	for _, patch := range step.Patch {
		if err := p.patchObject(ctx, s, patch); err != nil {
			return err
		}
	}
	for _, deletion := range step.Delete {
		if err := p.deleteObject(ctx, s, deletion); err != nil {
			return err
		}
	}
	for _, node := range step.Drain {
		if err := p.drainNode(ctx, s, node); err != nil {
			return fmt.Errorf("drain node %s: %w", node, err)
		}
	}
	if step.Answer != "" {
		return p.answerForDrivers(ctx, s, step.Answer)
	}
	return nil
}

// clientFor returns the client for the kind of an object.
func (p *Player) clientFor(s *Story, ref Ref) dynamic.ResourceInterface {
	client := p.objects.Resource(ref.resourceOf())
	if kinds[ref.Kind].isNamespaced {
		return client.Namespace(s.ID)
	}
	return client
}

// createObject creates an object. One of the same name that is being deleted may first have to go, the API server may have
// to see what was created before, such as a priority class, and a controller has to write the status of a quota before
// the API server lets anything pass.
func (p *Player) createObject(ctx context.Context, s *Story, object Object) error {
	ref := refTo(object)
	content, err := contentOf(object)
	if err != nil {
		return err
	}
	client := p.clientFor(s, ref)
	err = p.await(ctx, func(ctx context.Context) error {
		_, err := client.Create(ctx, &unstructured.Unstructured{Object: content}, metav1.CreateOptions{})
		if err == nil || apierrors.IsForbidden(err) {
			return err
		}
		if !apierrors.IsAlreadyExists(err) {
			return finalError{err}
		}
		if existing, getErr := client.Get(ctx, ref.Name, metav1.GetOptions{}); getErr == nil && existing.GetDeletionTimestamp() == nil {
			return finalError{err}
		}
		return err
	})
	if err == nil && ref.Kind == "ResourceQuota" {
		err = p.await(ctx, func(ctx context.Context) error {
			quota, err := p.client.CoreV1().ResourceQuotas(s.ID).Get(ctx, ref.Name, metav1.GetOptions{})
			if err == nil && len(quota.Status.Hard) < len(quota.Spec.Hard) {
				err = errors.New("no controller writes its status")
			}
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("create %s %s: %w", ref.Kind, ref.Name, err)
	}
	return nil
}

// finalError ends a wait.
type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

// await calls try until it returns nil or a final error, or time is up: then it returns the last error by which try
// was not cut off.
func (p *Player) await(ctx context.Context, try func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, p.patience, true, func(ctx context.Context) (bool, error) {
		err := try(ctx)
		if ctx.Err() == nil {
			last = err
		}
		if final := (finalError{}); errors.As(err, &final) {
			return false, final.error
		}
		return err == nil, nil
	})
	if wait.Interrupted(err) && last != nil && ctx.Err() == nil {
		return fmt.Errorf("waited %s: %w", p.patience, last)
	}
	return err
}

// replaceObject gives an object a new spec.
func (p *Player) replaceObject(ctx context.Context, s *Story, object Object) error {
	ref := refTo(object)
	content, err := contentOf(object)
	if err != nil {
		return err
	}
	if _, err := p.clientFor(s, ref).Update(ctx, &unstructured.Unstructured{Object: content}, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("replace %s %s: %w", ref.Kind, ref.Name, err)
	}
	return nil
}

func (p *Player) patchObject(ctx context.Context, s *Story, patch Patch) error {
	var subresources []string
	if patch.Subresource != "" {
		subresources = []string{patch.Subresource}
	}
	_, err := p.clientFor(s, patch.Ref).Patch(ctx, patch.Name, types.MergePatchType, []byte(patch.Merge), metav1.PatchOptions{}, subresources...)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("patch %s %s: %w", patch.Kind, patch.Name, err)
	}
	return nil
}

func (p *Player) deleteObject(ctx context.Context, s *Story, deletion Deletion) error {
	grace := int64(0)
	if deletion.IsGraceful {
		grace = graceSeconds
	}
	err := p.clientFor(s, deletion.Ref).Delete(ctx, deletion.Name, metav1.DeleteOptions{GracePeriodSeconds: &grace})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete %s %s: %w", deletion.Kind, deletion.Name, err)
	}
	return nil
}

// drainNode makes a node unschedulable, and deletes the Pods on it.
func (p *Player) drainNode(ctx context.Context, s *Story, node string) error {
	if _, err := p.client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, []byte(cordon), metav1.PatchOptions{}); err != nil {
		return err
	}
	return p.client.CoreV1().Pods(s.ID).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
}

const cordon = `{"spec": {"unschedulable": true}}`
