package adapters

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/api/validate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// configMapName is the name of the ConfigMap, with which the names of its
// templates begin.
const configMapName = "dra-kwok-configmap"

// configMapDocument is the text of config.yaml.
type configMapDocument struct {
	Driver   string            `json:"driver"`
	Mappings []json.RawMessage `json:"mappings"`
}

// mapping says what devices the nodes have that it selects.
type mapping struct {
	Name          string                `json:"name"`
	NodeSelector  *metav1.LabelSelector `json:"nodeSelector"`
	ResourceSlice json.RawMessage       `json:"resourceSlice"`
}

type mappedSlice struct {
	Devices []json.RawMessage `json:"devices"`
}

// mappedDevice is a device, or a group of like ones.
type mappedDevice struct {
	Name       string                     `json:"name"`
	Count      *int32                     `json:"count"`
	Attributes map[string]json.RawMessage `json:"attributes"`
}

// configMap adapts the document.
type configMap struct {
	adapter
	driver  string
	written []written
	// names maps the names of mappings to their paths.
	names map[string]*field.Path
}

// ConfigMap adapts the text of the key config.yaml of dra-kwok-configmap. Each
// mapping becomes a template, and the driver gets a DeviceClass, so that Pods
// can ask for its devices as an extended resource: by the name of the driver
// where it has a "/", such as karpenter.sh/dra-kwok-driver, or else by
// <driver>/device. They need the number among their limits, of which examples
// that have requests only say nothing.
//
// A "/" in the driver's name becomes "." and a "-" in the name of an attribute
// "_", since the API server would refuse them. Attributes are strings; numbers
// and bools are taken as they are written. A text with nothing in it, or without
// mappings, gives no templates and no class.
//
// The selectors' label kwok.x-k8s.io/node: fake is taken to mean every fake
// node: KWOK marks them with an annotation of that name, and Karpenter with both.
func ConfigMap(data string) (*Adapted, error) {
	document, err := readYAML(data)
	if err != nil {
		return nil, err
	}
	if document == nil {
		return &Adapted{}, nil
	}
	c := &configMap{names: map[string]*field.Path{}, written: writtenInMappings(data)}
	var given configMapDocument
	if !c.problems.decode(document, &given, nil) {
		return nil, c.problems.err()
	}
	if given.Driver == "" {
		c.problems.addErrors(field.Required(field.NewPath("driver"), "the name of the DRA driver, for example gpu.example.com"))
	}
	c.driver = c.driverName(given.Driver, "driver")
	for i, raw := range given.Mappings {
		c.addMapping(i, raw, field.NewPath("mappings").Index(i))
	}
	adapted, err := c.finish()
	if err != nil {
		return nil, err
	}
	if len(adapted.Templates) > 0 {
		adapted.Classes = []resourcev1.DeviceClass{deviceClass(given.Driver, c.driver)}
	}
	return adapted, nil
}

// writtenInMappings are the attributes of each mapping's devices as they are
// written. The text is known to be valid YAML; what has another form has been
// reported, or will be.
func writtenInMappings(data string) []written {
	var document struct {
		Mappings []struct {
			ResourceSlice written `yaml:"resourceSlice"`
		} `yaml:"mappings"`
	}
	_ = yaml.Unmarshal([]byte(data), &document)
	var all []written
	for _, m := range document.Mappings {
		all = append(all, m.ResourceSlice)
	}
	return all
}

func (c *configMap) addMapping(i int, raw json.RawMessage, path *field.Path) {
	var given mapping
	var slice mappedSlice
	slicePath := path.Child("resourceSlice")
	if !c.problems.decode(raw, &given, path) || !c.problems.decode(given.ResourceSlice, &slice, slicePath) {
		return
	}
	if given.Name == "" {
		c.problems.addErrors(field.Required(path.Child("name"), "the name of the mapping, for example h100-nodes"))
		return
	}
	if !c.problems.takeName(c.names, given.Name, path.Child("name")) {
		return
	}
	d := newDraft(templateName(configMapName, given.Name), c.driver, ConfigMapPriority)
	d.origins = map[string]string{"spec.driver": "driver", "spec.devices": slicePath.Child("devices").String(), "metadata.name": path.Child("name").String()}
	d.template.Spec.PoolName = v1alpha1.DefaultPoolName + "-device-pool"
	d.template.Spec.SliceLabels = map[string]string{"kwok.x-k8s.io/managed-by": "dra-kwok-driver", "kwok.x-k8s.io/node": v1alpha1.DefaultPoolName}
	if given.NodeSelector == nil {
		given.NodeSelector = &metav1.LabelSelector{}
	}
	d.requireLabels(&c.problems, given.NodeSelector, path.Child("nodeSelector"))
	var attributes written
	if i < len(c.written) {
		attributes = c.written[i]
	}
	for j, raw := range slice.Devices {
		at := slicePath.Child("devices").Index(j)
		c.addDevice(d, raw, at, func(name string) string { text, _ := attributes.scalar(j, name); return text })
	}
	c.drafts = append(c.drafts, d)
}

// addDevice adds a group of devices. Scalar is the text of an attribute as it is
// written.
func (c *configMap) addDevice(d *draft, raw json.RawMessage, path *field.Path, scalar func(name string) string) {
	var given mappedDevice
	if !c.problems.decode(raw, &given, path) {
		d.incomplete = true
		return
	}
	c.problems.checkName(given.Name, path.Child("name"))
	device := v1alpha1.DeviceTemplate{Name: given.Name, Count: given.Count}
	names := c.attributeNames(slices.Collect(maps.Keys(given.Attributes)), path.Child("attributes"))
	for _, name := range slices.Sorted(maps.Keys(names)) {
		at := path.Child("attributes").Key(name)
		text, problem := attributeText(given.Attributes[name], at, func() string { return scalar(name) })
		if problem != nil {
			c.problems.addErrors(problem)
			continue
		}
		if device.Attributes == nil {
			device.Attributes = map[resourcev1.QualifiedName]v1alpha1.Attribute{}
		}
		attribute := v1alpha1.Attribute{Type: v1alpha1.AttributeString, Value: text}
		device.Attributes[resourcev1.QualifiedName(names[name])] = c.problems.literalAttribute(attribute, at)
	}
	d.add(device, path)
}

// attributeText is the text of an attribute: a string, or a number or bool as it
// is written.
func attributeText(raw json.RawMessage, path *field.Path, scalar func() string) (string, *field.Error) {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return "", field.Invalid(path, shown(raw), "cannot be read: "+err.Error())
	}
	switch v := value.(type) {
	case string:
		return v, nil
	case nil:
		return "", field.Required(path, "the value of the attribute, a text")
	case map[string]any, []any:
		return "", field.Invalid(path, value, "must be text; attributes of other types need a ResourcePoolTemplate")
	}
	if text := scalar(); text != "" {
		return text, nil
	}
	return "", field.Invalid(path, value, "must be text: put it in quotes")
}

// deviceClass is the class of all devices of a driver. Its name is in lower case,
// which that of a driver need not be.
func deviceClass(given, driver string) resourcev1.DeviceClass {
	return resourcev1.DeviceClass{
		TypeMeta:   metav1.TypeMeta{APIVersion: resourcev1.SchemeGroupVersion.String(), Kind: "DeviceClass"},
		ObjectMeta: metav1.ObjectMeta{Name: strings.ToLower(driver)},
		Spec: resourcev1.DeviceClassSpec{
			Selectors: []resourcev1.DeviceSelector{{
				CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", driver)},
			}},
			ExtendedResourceName: new(extendedResource(given, driver)),
		},
	}
}

// extendedResource is what Pods ask for: the driver's name as it is written,
// where it is the name of an extended resource.
func extendedResource(given, driver string) string {
	if len(validate.ExtendedResourceName(context.Background(), operation.Operation{}, nil, &given, nil)) == 0 {
		return given
	}
	return strings.ToLower(driver) + "/device"
}
