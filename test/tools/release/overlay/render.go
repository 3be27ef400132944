package overlay

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/kwok-dra/kwok-dra/test/tools/release/image"
)

// Object is an object of Kubernetes.
type Object map[string]any

// Kind is the kind of the object.
func (o Object) Kind() string { return textOf(o["kind"]) }

// Name is the name of the object.
func (o Object) Name() string {
	metadata, _ := o["metadata"].(map[string]any)
	return textOf(metadata["name"])
}

// ID tells objects of a cluster apart.
func (o Object) ID() string {
	metadata, _ := o["metadata"].(map[string]any)
	return strings.Join([]string{textOf(o["apiVersion"]), o.Kind(), textOf(metadata["namespace"]), o.Name()}, "/")
}

func textOf(value any) string {
	text, _ := value.(string)
	return text
}

// Variant is what a user chooses: an overlay, components beside it, and the image
// of kwok-dra.
type Variant struct {
	Overlay    string
	Components []string
	// Tag is that of the image.
	Tag string
}

// Render returns the objects of a variant, in the order in which they are applied.
func (c *Checkout) Render(v Variant) ([]Object, error) {
	dir, err := os.MkdirTemp(c.Dir, "variant-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(v.kustomizationFile()), 0o600); err != nil {
		return nil, err
	}
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy
	rendered, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, fmt.Errorf("render kustomize/%s: %w", v.Overlay, err)
	}
	var objects []Object
	for _, resource := range rendered.Resources() {
		object, err := resource.Map()
		if err != nil {
			return nil, fmt.Errorf("render kustomize/%s: %w", v.Overlay, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// kustomizationFile is what the user would write in a directory beside kustomize.
func (v Variant) kustomizationFile() string {
	lines := []string{"resources: [../kustomize/" + v.Overlay + "]"}
	if len(v.Components) > 0 {
		lines = append(lines, "components: [../kustomize/"+strings.Join(v.Components, ", ../kustomize/")+"]")
	}
	lines = append(lines, "images: [{name: kwok-dra/kwok-dra, newName: "+image.Repository()+", newTag: "+v.Tag+"}]")
	return strings.Join(lines, "\n") + "\n"
}
