package devices

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/kwok-dra/kwok-dra/internal/devices/gotemplate"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// Template is a compiled ResourcePoolTemplate.
type Template struct {
	Name string
	// The spec is as it is written. Do not change it.
	*v1alpha1.ResourcePoolTemplateSpec
	// PublishWhen and RetireWhen are nil where the template leaves them to the
	// KwokDRAConfiguration.
	PublishWhen, RetireWhen *lifecycle.Selector
	ClaimStatus             *ClaimStatus
	// CheckParameters returns the error of a driver that cannot use opaque parameters. It is nil
	// where the driver accepts any.
	CheckParameters func(driver string, parameters []byte) error
	// Pod is the driver Pod that the template is bound to, and BindPod copies the template for one. BindPod is nil where no
	// extension knows driver Pods.
	Pod     BoundPod
	BindPod BindPod
	Origin  Origin

	nodes   *nodeaffinity.NodeSelector
	content poolContent
}

// Origin is the document that a template is from. The templates of a document stand or fall
// together.
type Origin struct {
	// Document is how users know it, such as "DRAConfig gpus". It is empty for a
	// ResourcePoolTemplate, which is a document by itself.
	Document string
	// Part is what of the document the template is made from, such as "pool a".
	Part string
	// Carrier is the object in the cluster that has the document, or nil for a file.
	Carrier *corev1.ObjectReference
	// Created is when it was created in the cluster, or zero where it is no object of its own.
	Created time.Time
}

// poolContent is what the pools of a template have, before it is rendered for a Node.
type poolContent struct {
	// uid is that of the template's object in the cluster, if there is one.
	uid      types.UID
	poolName gotemplate.Text
	// labels are those of the slices, in the order of their keys.
	labels      []labelValue
	counterSets []resourcev1.CounterSet
	setNames    nameRegistry
	groups      []*group
	// devices are those of all groups, in the order of the pool.
	devices []*device
	byName  map[string]*device
	// split has the names of the devices in each slice, for a template that has slices.
	split [][]string
}

type labelValue struct {
	gotemplate.Text

	key string
}

// titleOf is how users know a template.
func titleOf(t *Template) string {
	if t.Origin.Part == "" {
		return documentOf(t)
	}
	return t.Origin.Part + " of " + documentOf(t)
}

// documentOf is how users know the document of a template.
func documentOf(t *Template) string {
	return cmp.Or(t.Origin.Document, "template "+t.Name)
}

// Selects reports whether the template is for the node.
func (t *Template) Selects(node *corev1.Node) bool {
	return t.nodes == nil || t.nodes.Match(node)
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

// WithoutDevices returns a copy that makes pools without devices and counter sets.
func (t *Template) WithoutDevices() *Template {
	empty := *t
	empty.content = poolContent{uid: t.content.uid, poolName: t.content.poolName, labels: t.content.labels}
	return &empty
}
