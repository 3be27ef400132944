package schedule

import (
	"cmp"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/dractl/documents"
	"github.com/kwok-dra/kwok-dra/internal/dractl/fleet"
	"github.com/kwok-dra/kwok-dra/internal/dractl/input"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// configuration is what files say of the drivers of fake nodes.
type configuration struct {
	documents []*config.Documents
	// daemonSets may be of drivers.
	daemonSets fleet.DriverPods
}

// readFrom has an Input add the objects that configure kwok-dra.
func (c *configuration) readFrom(in *input.Input, namespace string) {
	in.AddOther = func(object documents.Object, document *documents.Document) (isKnown bool, err error) {
		switch kind := object.GroupVersionKind().GroupKind(); {
		case kind.String() == "DaemonSet.apps":
			return true, cmp.Or(in.Once.Add(object, namespace), c.daemonSets.Add(object))
		case kind.Group != v1alpha1.GroupName:
			return false, nil
		}
		decoded, err := config.Decode(document.Where(), document.Data)
		if err != nil {
			return true, err
		}
		c.documents = append(c.documents, decoded)
		if object.GetKind() != v1alpha1.ResourcePoolTemplateKind {
			return true, nil
		}
		return true, in.Once.Add(object, "")
	}
}
