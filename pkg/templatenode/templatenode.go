// Package templatenode renders the ResourceSlices that a Node will have which does not exist yet. An
// autoscaler calls it before it decides which Node to create. ResourcePoolTemplates and a Node go in,
// slices come out, made by the code that publishes them once the Node exists.
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

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/devices"
	_ "github.com/kwok-dra/kwok-dra/internal/extensions/containerview/injections" // it checks containerEdits
	"github.com/kwok-dra/kwok-dra/internal/extensions/driverpods"
	_ "github.com/kwok-dra/kwok-dra/internal/extensions/parameters"     // it checks opaque parameters
	_ "github.com/kwok-dra/kwok-dra/internal/extensions/templatefields" // it checks what Go templates read
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice/features"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice/plan"
)

// ReadTemplates reads the ResourcePoolTemplates in files and directories, such as those that kwok-dra
// reads with --config. The error names the file, the object and the field.
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

// Renderer renders the slices of Nodes. It is safe for concurrent use.
type Renderer struct {
	templates []*devices.Template
	server    features.Server
}

// New makes a Renderer of templates. Like kwok-dra, it finds out by dry runs which fields of devices the
// client's API server keeps, and remembers the answers.
func New(client kubernetes.Interface, templates []*devices.Template) *Renderer {
	return &Renderer{templates: templates, server: resourceslice.NewProber(client)}
}

// Rendered has the slices of a Node.
type Rendered struct {
	// Slices are as kwok-dra will create them, in the order of their drivers.
	Slices []*resourcev1.ResourceSlice
	// Dropped are the fields of devices that the API server drops.
	Dropped []features.Dropped
}

// Render renders the slices of a Node. Give the Node the labels, the annotations and the status that it
// will have, since templates read them; its pools have its name. Pods are those that will run on it:
// templates with driverPod select theirs among them.
//
// If the slices of one driver fail, Render returns those of the others with the error. It does not
// render pools that nodes share: they are no part of a Node.
func (r *Renderer) Render(ctx context.Context, node *corev1.Node, pods ...*corev1.Pod) (Rendered, error) {
	rendered := Rendered{}
	object := lifecycle.NewObject(node)
	bound := devices.Bind(r.templates, node, driverpods.ListStarted(node, pods).BindTemplate)
	errs := slices.Collect(maps.Values(bound.Failed))
	byDriver := devices.SelectForNode(bound.Templates, node).ByDriver
	for _, driver := range slices.Sorted(maps.Keys(byDriver)) {
		if err := r.renderDriver(ctx, node, object, byDriver[driver], &rendered); err != nil {
			errs = append(errs, fmt.Errorf("render driver %s for node %s: %w", driver, node.Name, err))
		}
	}
	return rendered, utilerrors.NewAggregate(errs)
}

// renderDriver adds the slices of one driver.
func (r *Renderer) renderDriver(ctx context.Context, node *corev1.Node, object *lifecycle.Object, templates []*devices.Template, rendered *Rendered) error {
	taints, err := devices.TaintsOf(object)
	if err != nil {
		return err
	}
	pools, refusals, err := devices.PoolsForNode(templates, object, taints)
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
