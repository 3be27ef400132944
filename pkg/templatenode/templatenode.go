// Package templatenode tells which ResourceSlices a Node will have that does not exist
// yet. An autoscaler asks it before it decides which Node to make: it renders
// ResourcePoolTemplates with the code that publishes them once the Node is there.
//
//	templates, err := templatenode.ReadTemplates(ctx, "gpus.yaml")
//	// ...
//	renderer := templatenode.New(client, templates)
//	rendered, err := renderer.Render(ctx, node)
//
// Its maturity is beta; docs/reference/stability.md says what may change.
package templatenode

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/pkg/config"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/resourceslice"
	"github.com/kwok-dra/kwok-dra/pkg/resourceslice/features"
	"github.com/kwok-dra/kwok-dra/pkg/resourceslice/plan"
)

// ReadTemplates reads the ResourcePoolTemplates of files and directories, which may be
// those that kwok-dra has with --config. The error names the file, the object and the
// field.
func ReadTemplates(ctx context.Context, paths ...string) ([]*devices.Template, error) {
	documents, err := config.ReadFiles(ctx, paths)
	if err != nil {
		return nil, err
	}
	store := config.NewStore(config.FilesCarrier)
	if err := store.Replace(config.FilesCarrier, documents); err != nil {
		return nil, err
	}
	return store.Current().Templates, nil
}

// Renderer renders the slices of Nodes. It may be used concurrently.
type Renderer struct {
	templates []*devices.Template
	server    features.Server
}

// New makes a Renderer of templates. Dry runs find out which fields of devices the API
// server of the client keeps, as kwok-dra does. Their answers are remembered.
func New(client kubernetes.Interface, templates []*devices.Template) *Renderer {
	return &Renderer{templates: templates, server: resourceslice.NewProber(client)}
}

// Rendered is what a Node will have.
type Rendered struct {
	// Slices are as they will be created, in the order of their drivers.
	Slices []*resourcev1.ResourceSlice
	// Dropped are the fields of devices that the API server drops.
	Dropped []features.Dropped
}

// Render renders the slices of a Node. Of the Node the templates see what is given, so
// it should have the labels, the annotations and the status that it will have; its name
// is that of its pools. Pods are those that will run on it: templates with driverPod
// look for theirs among them.
//
// The slices of one driver fail alone. What could be rendered is there beside the error.
// Pools that nodes share are not among them, since they are no part of a Node.
func (r *Renderer) Render(ctx context.Context, node *corev1.Node, pods ...*corev1.Pod) (Rendered, error) {
	rendered := Rendered{}
	object := lifecycle.NodeObject(node)
	bound := devices.Bind(r.templates, node, devices.Started(node, pods))
	errs := slices.Collect(maps.Values(bound.Failed))
	byDriver := devices.ForDriver(bound.Templates, node)
	for _, driver := range slices.Sorted(maps.Keys(byDriver)) {
		if err := r.render(ctx, node, object, byDriver[driver], &rendered); err != nil {
			errs = append(errs, fmt.Errorf("render driver %s for node %s: %w", driver, node.Name, err))
		}
	}
	return rendered, utilerrors.NewAggregate(errs)
}

// render adds the slices of one driver.
func (r *Renderer) render(ctx context.Context, node *corev1.Node, object *lifecycle.Object, templates []*devices.Template, rendered *Rendered) error {
	taints, err := devices.TaintsOf(object)
	if err != nil {
		return err
	}
	pools, refusals, err := devices.Standing(templates, object, taints)
	if err != nil {
		return err
	}
	if len(refusals) > 0 {
		return refusals[0].Err
	}
	fitted, err := features.Fit(ctx, r.server, pools)
	if err != nil {
		return err
	}
	needs, err := plan.New("", node, &fitted, nil)
	if err != nil {
		return err
	}
	rendered.Slices = append(rendered.Slices, needs.Create...)
	rendered.Dropped = append(rendered.Dropped, fitted.Dropped...)
	return nil
}
