package devices

import (
	"errors"
	"maps"
	"slices"
	"strconv"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/api/validation"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
)

// ContainerEdits are the containerEdits of a ResourcePoolTemplate made ready for use.
// Those that the template lacks are nil.
type ContainerEdits struct {
	PerClaim, PerRequest, PerDevice *Edits
}

// Edits are some of the containerEdits.
type Edits struct {
	source *v1alpha1.Edits
	path   *field.Path
	// programs are those of the templates, in the order of walk.
	programs []*program
}

// AllocatedClaim names a claim to templates.
type AllocatedClaim struct {
	Object

	AdminAccess bool `json:"adminAccess"`
}

// AllocatedDevice is a device that has been allocated, to templates.
type AllocatedDevice struct {
	Device *resourcev1.Device                        `json:"Device"`
	Result *resourcev1.DeviceRequestAllocationResult `json:"Result"`
}

// Container is what the templates of containerEdits see of a container that has
// devices of the driver.
type Container struct {
	Node   *lifecycle.Object `json:"-"`
	Claim  AllocatedClaim
	Pod    Object
	Config []runtime.RawExtension
	// Device and Result are for PerDevice.
	Device *resourcev1.Device                        `json:",omitempty"`
	Result *resourcev1.DeviceRequestAllocationResult `json:",omitempty"`
	// Request is for PerRequest, and Devices for it and PerClaim.
	Request string            `json:",omitempty"`
	Devices []AllocatedDevice `json:",omitempty"`
}

// sampleContainer stands in for a container when templates are checked.
var sampleContainer = map[string]any{
	"Node":   sample,
	"Claim":  AllocatedClaim{Object: Object{Name: "claim", Namespace: "default", UID: "00000000-0000-0000-0000-000000000000"}},
	"Pod":    Object{Name: "pod", Namespace: "default", UID: "00000000-0000-0000-0000-000000000000"},
	"Config": []any{},
}

// sampleWith adds some of what is known of an allocated device.
func sampleWith(names ...string) map[string]any {
	given := maps.Clone(sampleContainer)
	device, result := sampleAllocated["Device"].(resourcev1.Device), sampleAllocated["Result"].(resourcev1.DeviceRequestAllocationResult)
	all := map[string]any{"Device": device, "Result": result, "Request": result.Request, "Devices": []AllocatedDevice{{Device: &device, Result: &result}}}
	for _, name := range names {
		given[name] = all[name]
	}
	return given
}

// newContainerEdits parses the templates of validated containerEdits.
func newContainerEdits(source *v1alpha1.ContainerEdits, path *field.Path) (c ContainerEdits, errs field.ErrorList) {
	if source == nil {
		return c, nil
	}
	c.PerClaim = newEdits(source.PerClaim, path.Child("perClaim"), sampleWith("Devices"), &errs)
	c.PerRequest = newEdits(source.PerRequest, path.Child("perRequest"), sampleWith("Devices", "Request"), &errs)
	c.PerDevice = newEdits(source.PerDevice, path.Child("perDevice"), sampleWith("Device", "Result"), &errs)
	return c, errs
}

func newEdits(source *v1alpha1.Edits, path *field.Path, sample map[string]any, errs *field.ErrorList) *Edits {
	if source == nil {
		return nil
	}
	e := &Edits{source: source, path: path}
	e.walk(func(p place) string {
		*errs = append(*errs, p.check(sample)...)
		e.programs = append(e.programs, p.program)
		return p.value
	})
	return e
}

// walk goes through all strings that are templates, always in the same order, and
// returns the results.
func (e *Edits) walk(render func(place) string) *v1alpha1.Edits {
	each := eachTemplate(render)
	made := e.source.DeepCopy()
	made.Env = walkList(made.Env, e.path.Child("env"), each)
	for i := range made.Mounts {
		mount, path := &made.Mounts[i], e.path.Child("mounts").Index(i)
		mount.HostPath = each(path.Child("hostPath"), mount.HostPath)
		mount.ContainerPath = each(path.Child("containerPath"), mount.ContainerPath)
		mount.Options = walkList(mount.Options, path.Child("options"), each)
		mount.Type = each(path.Child("type"), mount.Type)
	}
	for i := range made.DeviceNodes {
		walkDeviceNode(&made.DeviceNodes[i], e.path.Child("deviceNodes").Index(i), each)
	}
	return made
}

func walkDeviceNode(node *v1alpha1.DeviceNode, path *field.Path, each func(path *field.Path, value string) string) {
	node.Path = each(path.Child("path"), node.Path)
	node.HostPath = each(path.Child("hostPath"), node.HostPath)
	node.Type = each(path.Child("type"), node.Type)
	node.Permissions = each(path.Child("permissions"), node.Permissions)
	walkNumber(node.Major, path.Child("major"), each)
	walkNumber(node.Minor, path.Child("minor"), each)
}

// walkNumber makes a number of a text, where it is one.
func walkNumber(number *intstr.IntOrString, path *field.Path, each func(path *field.Path, value string) string) {
	if number == nil || number.Type == intstr.Int {
		return
	}
	number.StrVal = each(path, number.StrVal)
	if value, err := strconv.ParseInt(number.StrVal, 10, 32); err == nil {
		*number = intstr.FromInt32(int32(value))
	}
}

// Render makes the edits for a container. What its templates leave empty is left out.
func (e *Edits) Render(c *Container) (*v1alpha1.Edits, error) {
	given, err := e.given(c)
	if err != nil {
		return nil, err
	}
	rendered := newTexts(e.programs, given)
	made := e.walk(rendered.next)
	if err := errors.Join(rendered.errs...); err != nil {
		return nil, err
	}
	made.Env = slices.DeleteFunc(made.Env, func(variable string) bool { return variable == "" })
	made.Mounts = slices.DeleteFunc(made.Mounts, func(m v1alpha1.Mount) bool { return m.ContainerPath == "" })
	made.DeviceNodes = slices.DeleteFunc(made.DeviceNodes, func(n v1alpha1.DeviceNode) bool { return n.Path == "" })
	return made, validation.ValidateEdits(made, e.path).ToAggregate()
}

func (e *Edits) given(c *Container) (map[string]any, error) {
	if len(e.programs) == 0 {
		return nil, nil
	}
	decoded, err := asJSON(c)
	if err != nil {
		return nil, err
	}
	given := decoded.(map[string]any)
	given["Node"], err = c.Node.Decoded()
	return given, err
}
