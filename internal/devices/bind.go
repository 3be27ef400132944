package devices

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// Presence knows the driver Pods of all nodes, which the pools of templates with driverPod come and go
// with. An extension provides it.
type Presence interface {
	// On is what the cache has of a node.
	On(node string) Pods
	// Live is what the API server has of a node.
	Live(ctx context.Context, templates []*Template, node *corev1.Node) (Pods, error)
	// Handle calls node with the name of each node whose driver Pods have changed, and all
	// when those of any node may have. Call it before the Pods are watched.
	Handle(node func(name string), all func())
}

// Pods adds to bound what becomes of a template that selects a node, by the driver Pods there.
type Pods func(t *Template, bound *Bound)

// UnknownPresence is the Presence of a program that does not watch driver Pods. None are known, so
// what they have published stays.
type UnknownPresence struct{}

// On implements Presence.
func (UnknownPresence) On(string) Pods {
	return func(t *Template, bound *Bound) { bound.Unknown = append(bound.Unknown, t) }
}

// Live implements Presence.
func (u UnknownPresence) Live(context.Context, []*Template, *corev1.Node) (Pods, error) {
	return u.On(""), nil
}

// Handle implements Presence. Nothing changes.
func (UnknownPresence) Handle(func(name string), func()) {}

// Bound are the templates of a node. Those with driverPod are bound to the driver Pods there.
type Bound struct {
	// Templates are those without driverPod, and the others once for each driver to which the
	// kubelet has a connection.
	Templates []*Template
	// Down are the drivers that have Pods, but to which the kubelet has lost the connection.
	Down map[string]Down
	// Absent are the templates without a connection, and Unknown those whose Pods are not
	// known. Failed are those that cannot be rendered for a Pod, with the error.
	Absent, Unknown []*Template
	Failed          map[*Template]error
}

// Down is a driver to which the kubelet has lost the connection.
type Down struct {
	// Template is bound to the newest Pod.
	Template *Template
	// Since is when the last connection was lost, or zero if that is unknown.
	Since time.Time
	// Registered reports whether the plugin is still registered with the kubelet.
	Registered bool
}

// Bind binds the templates that select a node to the driver Pods there. A nil pods means that the
// node has none.
func Bind(templates []*Template, node *corev1.Node, pods Pods) Bound {
	bound := Bound{Down: map[string]Down{}, Failed: map[*Template]error{}}
	for _, t := range templates {
		switch {
		case t.DriverPod == nil:
			bound.Templates = append(bound.Templates, t)
		case !t.Selects(node):
		case pods == nil:
			bound.Absent = append(bound.Absent, t)
		default:
			pods(t, &bound)
		}
	}
	for _, t := range bound.Templates {
		delete(bound.Down, t.Driver)
	}
	return bound
}

// BoundPod is a driver Pod that a template is bound to.
type BoundPod struct {
	// Ready reports whether the Pod has been Ready since its plugin runs. It is true for a template
	// that is not bound.
	Ready bool
	// Data returns the PodData of the Pod, encoded as JSON and decoded. It is nil for a template that
	// is not bound.
	Data func() (any, error)
}

// PodData is a driver Pod as Go templates see it.
type PodData struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace"`
	UID         types.UID         `json:"uid"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	Env         map[string]string `json:"env"`
	Args        []string          `json:"args"`
	Image       string            `json:"image"`
	Tag         string            `json:"tag"`
}

// SamplePod stands in for a driver Pod when templates are checked.
var SamplePod = PodData{
	Name: "driver-x", Namespace: "driver", UID: "00000000-0000-0000-0000-000000000000",
	Labels: map[string]string{"app": "driver"}, Annotations: map[string]string{}, Env: map[string]string{"NAME": "value"},
	Args: []string{"--v=2"}, Image: "registry.example.com/driver:v1", Tag: "v1",
}

// NamesDriver reports whether the name of the driver is read from the driver Pods.
func (t *Template) NamesDriver() bool {
	return t.DriverPod != nil && v1alpha1.IsTemplate(t.Driver)
}

// MayBeOf reports whether the template has driverPod and may be of a driver.
func (t *Template) MayBeOf(driver string) bool {
	return t.DriverPod != nil && (t.Driver == driver || t.NamesDriver())
}

// Lookup finds the devices of a node. It is not safe for concurrent use.
type Lookup struct {
	// Node is the Node as templates see it.
	Node *lifecycle.Object
	// templates chooses those of the node by driver, once they are needed.
	templates func() map[string][]*Template
	taints    func() (Taints, error)
	// pools are those of each driver that was looked up. They have no devices.
	pools map[string][]Pool
}

// NewLookup makes a Lookup of the devices of a node that may be allocated. Those of drivers without a
// connection are among them, if the driver's name is known.
func (b *Bound) NewLookup(node *corev1.Node) *Lookup {
	templates := slices.Clone(b.Templates)
	for _, down := range b.Down {
		templates = append(templates, down.Template)
	}
	for _, t := range b.Absent {
		isNamed := func(other *Template) bool { return other.Name == t.Name }
		if !t.NamesDriver() && !slices.ContainsFunc(templates, isNamed) {
			templates = append(templates, t)
		}
	}
	object := lifecycle.NewObject(node)
	return &Lookup{
		Node:      object,
		templates: sync.OnceValue(func() map[string][]*Template { return SelectForNode(templates, node).ByDriver }),
		taints:    sync.OnceValues(func() (Taints, error) { return TaintsOf(object) }),
		pools:     map[string][]Pool{},
	}
}

// Template finds the template that an allocated device is from.
func (l *Lookup) Template(result *resourcev1.DeviceRequestAllocationResult) (*Template, error) {
	templates := l.templates()[result.Driver]
	if len(templates) == 1 && templates[0].content.byName[result.Device] != nil {
		return templates[0], nil
	}
	return l.findTemplate(result)
}

// Device renders an allocated device as it is published.
func (l *Lookup) Device(result *resourcev1.DeviceRequestAllocationResult) (*resourcev1.Device, error) {
	t, err := l.findTemplate(result)
	if err != nil {
		return nil, err
	}
	taints, err := l.taints()
	if err != nil {
		return nil, err
	}
	device, err := t.content.byName[result.Device].renderDevice(t.newRenderer(l.Node))
	if err != nil {
		return nil, fmt.Errorf(cannotRender, t.Name, err)
	}
	pool := Pool{Driver: result.Driver, Devices: []resourcev1.Device{device}}
	return &pool.Devices[0], taints.addTo(&pool)
}

// findTemplate finds the template by the device and its pool.
func (l *Lookup) findTemplate(result *resourcev1.DeviceRequestAllocationResult) (*Template, error) {
	templates := l.templates()[result.Driver]
	pools, known := l.pools[result.Driver]
	if !known {
		var err error
		if pools, _, err = mergeDocuments(templates, l.Node); err != nil {
			return nil, err
		}
		l.pools[result.Driver] = pools
	}
	for _, pool := range pools {
		if t := pool.findTemplate(result.Device); t != nil && pool.Name == result.Pool {
			return t, nil
		}
	}
	for _, t := range templates {
		if t.SharedWith != nil && t.PoolName == result.Pool && t.content.byName[result.Device] != nil {
			return t, nil
		}
	}
	// Drivers answer so for a device that they do not have.
	return nil, fmt.Errorf("requested device is not allocatable: %s in pool %s of driver %s", result.Device, result.Pool, result.Driver)
}
