package containerview

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// Container is what a container of a Pod sees.
type Container struct {
	Name string `json:"name"`
	// Init says that it is an init container.
	Init bool `json:"init,omitempty"`
	// Env are the variables as NAME=value: those with a value in the Pod first, then
	// those that are injected. Of two with one name there is the last, in the place of
	// the first.
	Env []string `json:"env,omitempty"`
	// Mounts are those that are injected, in the order in which they are made.
	Mounts      []v1alpha1.Mount      `json:"mounts,omitempty"`
	DeviceNodes []v1alpha1.DeviceNode `json:"deviceNodes,omitempty"`
	// MetadataFiles are those of the mounts that have device metadata, where the content is known.
	MetadataFiles []MetadataFile `json:"metadataFiles,omitempty"`
	// Devices are the allocated devices that the container names, in the order of its
	// claims and of their allocation.
	Devices []Device `json:"devices,omitempty"`
}

// Device is an allocated device that a container has.
type Device struct {
	Driver string `json:"driver"`
	Pool   string `json:"pool"`
	Device string `json:"device"`
	// Claim is the name of the ResourceClaim, and Request that of its request: of an
	// alternative REQUEST/ALTERNATIVE.
	Claim            string                                         `json:"claim"`
	Request          string                                         `json:"request"`
	AdminAccess      bool                                           `json:"adminAccess,omitempty"`
	ShareID          types.UID                                      `json:"shareID,omitempty"`
	ConsumedCapacity map[resourcev1.QualifiedName]resource.Quantity `json:"consumedCapacity,omitempty"`
	// Attributes and Capacity are as the driver publishes them, where that is known.
	Attributes map[resourcev1.QualifiedName]resourcev1.DeviceAttribute `json:"attributes,omitempty"`
	Capacity   map[resourcev1.QualifiedName]resourcev1.DeviceCapacity  `json:"capacity,omitempty"`
}

// Drivers answers for all drivers of the Pod's node.
type Drivers interface {
	// Injections lists what drivers have a runtime inject into a container of the Pod
	// for some allocated devices of a claim, in the order in which it is applied.
	Injections(pod *corev1.Pod, claim *resourcev1.ResourceClaim, results []*resourcev1.DeviceRequestAllocationResult) ([]Injection, error)
	// Device is an allocated device as it is published, or nil where that is not known.
	Device(result *resourcev1.DeviceRequestAllocationResult) *resourcev1.Device
}

// Injection are edits that are made once for a container, however often they are listed.
type Injection struct {
	// ID tells one injection from another.
	ID string
	v1alpha1.Edits
	// MetadataFiles are what mounts of the edits have.
	MetadataFiles []MetadataFile
}

// Of returns what the containers of a Pod see, init containers first. It takes the claims of the Pod
// by their names in the API.
func Of(pod *corev1.Pod, claims map[string]*resourcev1.ResourceClaim, drivers Drivers) ([]Container, error) {
	var views []Container
	for i := range pod.Spec.InitContainers {
		view, err := viewOf(pod, &pod.Spec.InitContainers[i], claims, drivers)
		if err != nil {
			return nil, err
		}
		view.Init = true
		views = append(views, view)
	}
	for i := range pod.Spec.Containers {
		view, err := viewOf(pod, &pod.Spec.Containers[i], claims, drivers)
		if err != nil {
			return nil, err
		}
		views = append(views, view)
	}
	return views, nil
}

func viewOf(pod *corev1.Pod, container *corev1.Container, claims map[string]*resourcev1.ResourceClaim, drivers Drivers) (Container, error) {
	view := Container{Name: container.Name}
	for _, variable := range container.Env {
		if variable.ValueFrom == nil {
			view.setEnv(variable.Name + "=" + variable.Value)
		}
	}
	uses, err := usesOf(pod, container)
	if err != nil {
		return view, fmt.Errorf("container %s: %w", container.Name, err)
	}
	injected := sets.New[string]()
	for _, use := range uses {
		results, err := use.allocatedResults(claims)
		if err != nil {
			return view, fmt.Errorf("container %s: %w", container.Name, err)
		}
		view.addDevices(use.claim, results, drivers)
		injections, err := drivers.Injections(pod, claims[use.claim], results)
		if err != nil {
			return view, fmt.Errorf("container %s: ResourceClaim %s: %w", container.Name, use.claim, err)
		}
		for _, injection := range injections {
			if !injected.Has(injection.ID) {
				injected.Insert(injection.ID)
				view.applyEdits(&injection.Edits)
				view.MetadataFiles = append(view.MetadataFiles, injection.MetadataFiles...)
			}
		}
	}
	return view, nil
}

// addDevices adds devices that the container does not have yet, whichever of its requests select them.
func (c *Container) addDevices(claim string, results []*resourcev1.DeviceRequestAllocationResult, drivers Drivers) {
	for _, result := range results {
		device := Device{
			Driver: result.Driver, Pool: result.Pool, Device: result.Device, Claim: claim, Request: result.Request,
			AdminAccess: result.AdminAccess != nil && *result.AdminAccess, ConsumedCapacity: result.ConsumedCapacity,
		}
		if result.ShareID != nil {
			device.ShareID = *result.ShareID
		}
		if published := drivers.Device(result); published != nil {
			device.Attributes, device.Capacity = published.Attributes, published.Capacity
		}
		if !slices.ContainsFunc(c.Devices, device.isSameResult) {
			c.Devices = append(c.Devices, device)
		}
	}
}

// isSameResult reports whether another Device is the same result of the same claim.
func (d *Device) isSameResult(other Device) bool {
	return d.Claim == other.Claim && d.Request == other.Request && d.ShareID == other.ShareID &&
		d.Driver == other.Driver && d.Pool == other.Pool && d.Device == other.Device
}

// applyEdits does what runtimes do with CDI edits (Apply in internal/extensions/containerview/cdi of container-device-interface):
// later edits win, and outer mounts come before the mounts inside them.
func (c *Container) applyEdits(edits *v1alpha1.Edits) {
	for _, variable := range edits.Env {
		c.setEnv(variable)
	}
	for _, node := range edits.DeviceNodes {
		c.DeviceNodes = append(slices.DeleteFunc(c.DeviceNodes, func(d v1alpha1.DeviceNode) bool { return d.Path == node.Path }), node)
	}
	for _, mount := range edits.Mounts {
		c.Mounts = append(slices.DeleteFunc(c.Mounts, func(m v1alpha1.Mount) bool { return m.ContainerPath == mount.ContainerPath }), mount)
	}
	slices.SortStableFunc(c.Mounts, func(a, b v1alpha1.Mount) int { return pathDepth(a.ContainerPath) - pathDepth(b.ContainerPath) })
}

func (c *Container) setEnv(variable string) {
	name, _, _ := strings.Cut(variable, "=")
	i := slices.IndexFunc(c.Env, func(v string) bool { return strings.HasPrefix(v, name+"=") })
	if i < 0 {
		c.Env = append(c.Env, variable)
		return
	}
	c.Env[i] = variable
}
