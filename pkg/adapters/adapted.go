package adapters

import (
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// The priorities of templates by where they are from: per node and driver a
// NodeOverlay comes first, then templates and DRAConfigs, then the ConfigMap.
const (
	// NodeOverlayPriority is that of a NodeOverlay without a weight; its weight, at
	// most 10,000, is added.
	NodeOverlayPriority int32 = 1_000_000
	// TemplatePriority is that of a DRAConfig, as of a template that gives none.
	TemplatePriority int32 = 0
	// ConfigMapPriority is that of the mappings in the ConfigMap.
	ConfigMapPriority int32 = -1_000_000
)

// Adapted is what a foreign document becomes.
type Adapted struct {
	// Templates are defaulted and valid, in the order of their names, which is that
	// of their devices where they form one pool.
	Templates []v1alpha1.ResourcePoolTemplate
	// Classes are the DeviceClasses that the document's Pods need.
	Classes []resourcev1.DeviceClass
	// Changes says, a sentence each, what was published in another form than it was
	// written, or left out.
	Changes []string
}
