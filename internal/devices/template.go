package devices

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/kwok-dra/kwok-dra/internal/devices/gotemplate"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// Template is a compiled ResourcePoolTemplate.
type Template struct {
	// Name is the name of the ResourcePoolTemplate.
	Name string
	// The spec is as it is written. Do not change it.
	*v1alpha1.ResourcePoolTemplateSpec
	// PublishWhen and RetireWhen are nil where the template leaves them to the
	// KwokDRAConfiguration.
	PublishWhen, RetireWhen *lifecycle.Selector
	// ClaimStatus is what claims show of prepared devices.
	ClaimStatus *ClaimStatus
	// Parameters checks opaque parameters as the driver does. It is nil where the driver accepts any.
	Parameters ParameterChecker
	// Origin is the document that the template is from.
	Origin Origin

	nodes   *nodeaffinity.NodeSelector
	content poolContent
	podBinding
}

// podBinding is what a driver Pod decides.
type podBinding struct {
	// driver is the name of the driver, counts is nil where no driver Pod says how many devices
	// there are, and pod is the driver Pod that the template is bound to, or nil.
	driver gotemplate.Text
	counts *counts
	pod    *BoundPod
}

// ParameterChecker returns the error of a driver that cannot use opaque parameters, or nil.
type ParameterChecker interface {
	Check(driver string, parameters []byte) error
}

// poolContent is what the pools of a template have, before it is rendered for a Node.
type poolContent struct {
	// uid is that of the template's object in the cluster, if there is one.
	uid      types.UID
	poolName gotemplate.Text
	// labels are those of the slices, in the order of their keys.
	labels      []labelValue
	counterSets []resourcev1.CounterSet
	groups      []*group
	// devices are those of all groups, in the order of the pool.
	devices []*device
	byName  map[string]*device
	// split has the names of the devices in each slice, for a template that has slices.
	split [][]string
}

// labelValue is the value of a slice's label.
type labelValue struct {
	gotemplate.Text

	key string
}

// Uses reports whether used finds what it looks for in the template's pools, in fields that are
// not rendered.
func (t *Template) Uses(used func(pool *Pool) bool) bool {
	pool := Pool{
		Driver: t.Driver, Name: t.SharedPool(), SharedWith: t.SharedWith,
		PartitionTypeAttribute: t.PartitionTypeAttribute, SkipNodeOperations: t.SkipNodeOperations,
	}
	for _, d := range t.content.devices {
		pool.Devices = append(pool.Devices, d.Device)
	}
	return used(&pool)
}

// SharedPool is the name of the pool that the template's nodes share. It is empty where each node
// has a pool of its own.
func (t *Template) SharedPool() string {
	if t.SharedWith == nil {
		return ""
	}
	return t.PoolName
}

// Size is the number of devices that a pool has from the template.
func (t *Template) Size() int {
	return len(t.content.devices)
}

func (c *poolContent) hasCounterSet(name string) bool {
	return slices.ContainsFunc(c.counterSets, func(own resourcev1.CounterSet) bool { return own.Name == name })
}
