package diff

import (
	"fmt"

	"github.com/pmezard/go-difflib/difflib"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/internal/controller/installation"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// action is what the sidecar would do with a slice.
type action string

const (
	create action = "create"
	update action = "update"
	remove action = "delete"
)

// change is a slice that would change.
type change struct {
	Action action `json:"action"`
	Name   string `json:"name"`
	Node   string `json:"node,omitempty"`
	Driver string `json:"driver"`
	Pool   string `json:"pool"`
	// Live is what there is, and Wanted what the sidecar would write.
	Live   *shown `json:"live,omitempty"`
	Wanted *shown `json:"wanted,omitempty"`
}

// shown are the parts of a slice that the sidecar writes.
type shown struct {
	// Annotations are the record of the installation only.
	Annotations     map[string]string            `json:"annotations,omitempty"`
	Labels          map[string]string            `json:"labels,omitempty"`
	OwnerReferences []metav1.OwnerReference      `json:"ownerReferences,omitempty"`
	Spec            resourcev1.ResourceSliceSpec `json:"spec"`
}

func newChange(does action, live, wanted *resourcev1.ResourceSlice) change {
	of := wanted
	if of == nil {
		of = live
	}
	made := change{Action: does, Name: of.Name, Driver: of.Spec.Driver, Pool: of.Spec.Pool.Name, Live: shownParts(live), Wanted: shownParts(wanted)}
	if made.Live != nil && made.Wanted != nil && made.Wanted.Annotations == nil { // the record stays
		made.Wanted.Annotations = made.Live.Annotations
	}
	if of.Spec.NodeName != nil {
		made.Node = *of.Spec.NodeName
	}
	return made
}

func shownParts(slice *resourcev1.ResourceSlice) *shown {
	if slice == nil {
		return nil
	}
	made := &shown{Labels: slice.Labels, OwnerReferences: slice.OwnerReferences, Spec: slice.Spec}
	if owner := installation.Of(slice); owner != "" {
		made.Annotations = map[string]string{v1alpha1.InstallationAnnotation: string(owner)}
	}
	return made
}

// unifiedDiff is the change as a unified diff.
func (c *change) unifiedDiff() (string, error) {
	diff := difflib.UnifiedDiff{FromFile: "/dev/null", ToFile: "/dev/null", Context: 3}
	for _, side := range []struct {
		shown *shown
		named string
		file  *string
		lines *[]string
	}{
		{c.Live, "live/", &diff.FromFile, &diff.A},
		{c.Wanted, "sidecar/", &diff.ToFile, &diff.B},
	} {
		if side.shown == nil {
			continue
		}
		encoded, err := yaml.Marshal(side.shown)
		if err != nil {
			return "", fmt.Errorf("encode slice %s: %w", c.Name, err)
		}
		*side.file, *side.lines = side.named+c.Name, difflib.SplitLines(string(encoded))
		*side.lines = (*side.lines)[:len(*side.lines)-1] // what is behind the last line break
	}
	return difflib.GetUnifiedDiffString(diff)
}
