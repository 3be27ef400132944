package injections

import (
	"errors"
	"maps"
	"slices"
	"strconv"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/devices/gotemplate"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

func init() {
	devices.RegisterPart(validateContainerEdits, func(t *devices.Template) field.ErrorList { return checkContainerEdits(t.ResourcePoolTemplateSpec) })
}

// container is what the templates of containerEdits see of a container that has devices of the
// driver.
type container struct {
	Node   *lifecycle.Object `json:"-"`
	Claim  claimData
	Pod    devices.Object
	Config []runtime.RawExtension
	// Device and Result are for perDevice.
	Device *resourcev1.Device                        `json:",omitempty"`
	Result *resourcev1.DeviceRequestAllocationResult `json:",omitempty"`
	// Request is for perRequest, and Devices for it and perClaim.
	Request string       `json:",omitempty"`
	Devices []deviceData `json:",omitempty"`
}

// claimData is a claim as templates see it.
type claimData struct {
	devices.Object

	AdminAccess bool `json:"adminAccess"`
}

// deviceData is an allocated device as templates see it.
type deviceData struct {
	Device *resourcev1.Device                        `json:"Device"`
	Result *resourcev1.DeviceRequestAllocationResult `json:"Result"`
}

// sampleData returns a container that stands in for others when templates are checked, with some of
// what is known of an allocated device.
func sampleData(names ...string) map[string]any {
	const uid = "00000000-0000-0000-0000-000000000000"
	data := map[string]any{
		"Node":   devices.SampleNode,
		"Claim":  claimData{Object: devices.Object{Name: "claim", Namespace: "default", UID: uid}},
		"Pod":    devices.Object{Name: "pod", Namespace: "default", UID: uid},
		"Config": []any{},
	}
	device := resourcev1.Device{Name: "gpu-0"}
	result := resourcev1.DeviceRequestAllocationResult{Request: "gpu", Driver: "gpu.example.com", Pool: "sample", Device: device.Name}
	allocated := map[string]any{"Device": device, "Result": result, "Request": result.Request, "Devices": []deviceData{{Device: &device, Result: &result}}}
	maps.DeleteFunc(allocated, func(name string, _ any) bool { return !slices.Contains(names, name) })
	maps.Copy(data, allocated)
	return data
}

// checkContainerEdits checks the templates in validated containerEdits.
func checkContainerEdits(spec *v1alpha1.ResourcePoolTemplateSpec) (errs field.ErrorList) {
	edits := editsOf(spec)
	for _, part := range []struct {
		editsPart
		sample map[string]any
	}{
		{edits.perClaim, sampleData("Devices")},
		{edits.perRequest, sampleData("Devices", "Request")},
		{edits.perDevice, sampleData("Device", "Result")},
	} {
		if part.source == nil {
			continue
		}
		part.replaceTemplates(func(text *gotemplate.Text) string {
			errs = append(errs, text.Check(part.sample)...)
			return text.Source
		})
	}
	return errs
}

// editsPart is a part of containerEdits. The source is nil where a template does not have the part.
type editsPart struct {
	source *v1alpha1.Edits
	path   *field.Path
}

// containerEdits are the parts of a template's containerEdits.
type containerEdits struct {
	perClaim, perRequest, perDevice editsPart
}

func editsOf(spec *v1alpha1.ResourcePoolTemplateSpec) containerEdits {
	if spec.ContainerEdits == nil {
		return containerEdits{}
	}
	path := field.NewPath("spec", "containerEdits")
	return containerEdits{
		perClaim:   editsPart{spec.ContainerEdits.PerClaim, path.Child("perClaim")},
		perRequest: editsPart{spec.ContainerEdits.PerRequest, path.Child("perRequest")},
		perDevice:  editsPart{spec.ContainerEdits.PerDevice, path.Child("perDevice")},
	}
}

// renderEdits makes the edits for a container, without those that its templates leave empty.
func (p editsPart) renderEdits(c *container) (*v1alpha1.Edits, error) {
	var texts []*gotemplate.Text
	var invalid field.ErrorList
	p.replaceTemplates(func(text *gotemplate.Text) string {
		texts, invalid = append(texts, text), append(invalid, text.Parse()...)
		return text.Source
	})
	if len(invalid) > 0 {
		return nil, invalid.ToAggregate()
	}
	var data map[string]any
	if len(texts) > 0 {
		encoded, err := gotemplate.EncodeValue(c)
		if err != nil {
			return nil, err
		}
		data = encoded.(map[string]any)
		if data["Node"], err = c.Node.Decoded(); err != nil {
			return nil, err
		}
	}
	next, errs := gotemplate.RenderAll(texts, data)
	rendered := p.replaceTemplates(next)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	rendered.Env = slices.DeleteFunc(rendered.Env, func(variable string) bool { return variable == "" })
	rendered.Mounts = slices.DeleteFunc(rendered.Mounts, func(m v1alpha1.Mount) bool { return m.ContainerPath == "" })
	rendered.DeviceNodes = slices.DeleteFunc(rendered.DeviceNodes, func(n v1alpha1.DeviceNode) bool { return n.Path == "" })
	return rendered, validateEdits(rendered, p.path).ToAggregate()
}

// replaceTemplates returns the edits with all templates replaced, in an order that is always the
// same.
func (p editsPart) replaceTemplates(replace func(*gotemplate.Text) string) *v1alpha1.Edits {
	each := gotemplate.ReplaceTemplates(replace)
	edits := p.source.DeepCopy()
	edits.Env = each.InList(edits.Env, p.path.Child("env"))
	for i := range edits.Mounts {
		mount, path := &edits.Mounts[i], p.path.Child("mounts").Index(i)
		mount.HostPath = each(path.Child("hostPath"), mount.HostPath)
		mount.ContainerPath = each(path.Child("containerPath"), mount.ContainerPath)
		mount.Options = each.InList(mount.Options, path.Child("options"))
		mount.Type = each(path.Child("type"), mount.Type)
	}
	for i := range edits.DeviceNodes {
		node, path := &edits.DeviceNodes[i], p.path.Child("deviceNodes").Index(i)
		node.Path = each(path.Child("path"), node.Path)
		node.HostPath = each(path.Child("hostPath"), node.HostPath)
		node.Type = each(path.Child("type"), node.Type)
		node.Permissions = each(path.Child("permissions"), node.Permissions)
		replaceNumber(node.Major, path.Child("major"), each)
		replaceNumber(node.Minor, path.Child("minor"), each)
	}
	return edits
}

// replaceNumber replaces the text of a number, and makes it an integer if it is one.
func replaceNumber(number *intstr.IntOrString, path *field.Path, each gotemplate.Replacer) {
	if number == nil || number.Type == intstr.Int {
		return
	}
	number.StrVal = each(path, number.StrVal)
	if value, err := strconv.ParseInt(number.StrVal, 10, 32); err == nil {
		*number = intstr.FromInt32(int32(value))
	}
}
