// Package trialtest plays stories on a fake cluster.
package trialtest

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kwok-dra/kwok-dra/internal/dractl/checkscheduler/story"
	"github.com/kwok-dra/kwok-dra/internal/testing/apitest"
	"github.com/kwok-dra/kwok-dra/pkg/drajudge"
)

// Cluster is a fake API server on which stories are played. It implements trial.Player.
type Cluster struct {
	*apitest.Server

	// MayLackPods says that a story may delete what has gone by then.
	MayLackPods bool
	// Turn is of the program on trial, or of the story.
	Turn sync.Mutex
	// Plays counts the plays.
	Plays int
}

// Play implements trial.Player.
func (c *Cluster) Play(ctx context.Context, s *story.Story, rest func(context.Context) error) error {
	c.Plays++
	for i := range s.Steps {
		c.applyStep(ctx, s, &s.Steps[i])
		if s.Steps[i].Rest {
			if err := rest(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Cluster) applyStep(ctx context.Context, s *story.Story, step *story.Step) {
	c.Turn.Lock()
	defer c.Turn.Unlock()
	for _, object := range step.Create {
		c.Add(decodeObject(object))
	}
	for _, deletion := range step.Delete {
		switch deletion.Kind {
		case "Pod":
			DeleteObject[corev1.Pod](ctx, c, s.ID, deletion.Name)
		case "ResourceClaim":
			DeleteObject[resourcev1.ResourceClaim](ctx, c, s.ID, deletion.Name)
		}
	}
}

// DeleteObject deletes an object. The fake API server gives what it deletes no new version, so a write comes first.
func DeleteObject[T any, P apitest.Object[T]](ctx context.Context, c *Cluster, namespace, name string) {
	if c.MayLackPods && !slices.ContainsFunc(c.StoryObjects(ctx), func(object runtime.Object) bool {
		_, isKind := object.(P)
		return isKind && object.(metav1.Object).GetName() == name
	}) {
		return
	}
	apitest.Edit(c.Server, namespace, name, func(object P) { object.SetDeletionTimestamp(new(metav1.Now())) })
	c.Remove(apitest.Get[T, P](c.Server, namespace, name))
}

// decodeObject is an object with its type and a UID.
func decodeObject(object story.Object) runtime.Object {
	text, err := json.Marshal(object)
	Must(err)
	made, _, err := scheme.Codecs.UniversalDeserializer().Decode(text, nil, nil)
	Must(err)
	accessor, err := meta.Accessor(made)
	Must(err)
	accessor.SetUID(types.UID(uuid.NewString()))
	return made
}

// Clear implements trial.Player.
func (c *Cluster) Clear(ctx context.Context, _ *story.Story) error {
	c.Turn.Lock()
	defer c.Turn.Unlock()
	for _, object := range c.StoryObjects(ctx) {
		c.Remove(object)
	}
	return nil
}

// StoryObjects are all objects with the label of stories.
func (c *Cluster) StoryObjects(ctx context.Context) []runtime.Object {
	var found []runtime.Object
	all := metav1.ListOptions{}
	collect := func(list runtime.Object, err error) {
		Must(err)
		Must(meta.EachListItem(list, func(object runtime.Object) error {
			accessor, err := meta.Accessor(object)
			if err == nil && accessor.GetLabels()[story.Label] != "" {
				found = append(found, object)
			}
			return err
		}))
	}
	pods, err := c.CoreV1().Pods("").List(ctx, all)
	collect(pods, err)
	claims, err := c.ResourceV1().ResourceClaims("").List(ctx, all)
	collect(claims, err)
	published, err := c.ResourceV1().ResourceSlices().List(ctx, all)
	collect(published, err)
	classes, err := c.ResourceV1().DeviceClasses().List(ctx, all)
	collect(classes, err)
	nodes, err := c.CoreV1().Nodes().List(ctx, all)
	collect(nodes, err)
	namespaces, err := c.CoreV1().Namespaces().List(ctx, all)
	collect(namespaces, err)
	return found
}

// IDs are the statements that are violated, each once.
func IDs(violations []drajudge.Violation) []string {
	var found []string
	for _, v := range violations {
		found = append(found, v.Statement.ID)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// Must panics where a fake cluster cannot go on.
func Must(err error) {
	if err != nil {
		panic(err)
	}
}
