package adapters

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/api/validate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/pkg/api/defaults"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// configMapName begins the names of the ConfigMap's templates.
const configMapName = "dra-kwok-configmap"

// configMapDocument is the text of config.yaml.
type configMapDocument struct {
	Driver   string    `json:"driver"`
	Mappings []mapping `json:"mappings"`
}

// mapping has the devices of the nodes that it selects.
type mapping struct {
	Name          string               `json:"name"`
	NodeSelector  metav1.LabelSelector `json:"nodeSelector"`
	ResourceSlice mappedSlice          `json:"resourceSlice"`
}

type mappedSlice struct {
	Devices []mappedDevice `json:"devices"`
}

// mappedDevice is a device, or a group of equal ones.
type mappedDevice struct {
	Name       string                             `json:"name"`
	Count      *int32                             `json:"count"`
	Attributes map[resourcev1.QualifiedName]*text `json:"attributes"`
}

// text is a string, or a number or bool as the document has it.
type text string

// UnmarshalJSON reads a string.
func (t *text) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, (*string)(t)) != nil {
		return errors.New("must be text; attributes of other types need a ResourcePoolTemplate")
	}
	return nil
}

// UnmarshalText implements encoding.TextUnmarshaler, which has internal/util/strict hand over a number or bool
// as the document has it.
func (t *text) UnmarshalText(written []byte) error {
	*t = text(written)
	return nil
}

// configMap adapts the document.
type configMap struct {
	adapter
	driver string
}

// ConfigMap adapts the text of the key config.yaml of dra-kwok-configmap. Each mapping becomes a
// template, and the driver gets a DeviceClass, so that Pods can request its devices as an extended
// resource: the name of the driver if it has a "/", such as karpenter.sh/dra-kwok-driver, or else
// <driver>/device. A Pod needs the number in its limits; requests alone, as in some examples, do
// not suffice.
//
// The API server would refuse a "/" in the name of a driver, which becomes ".", and a "-" in the
// name of an attribute, which becomes "_". Attributes are strings; numbers and bools are taken as
// the document has them. An empty text, or one without mappings, has no templates and no class.
//
// The label kwok.x-k8s.io/node: fake in a selector selects every fake node: KWOK marks them with an
// annotation of that name, and Karpenter with both.
func ConfigMap(data string) (*config.Adapted, error) {
	document, problems := parseDocument(data)
	if len(problems) > 0 {
		return nil, problems
	}
	if document.Value == nil {
		return &config.Adapted{}, nil
	}
	var given configMapDocument
	c := &configMap{adapter: newAdapter()}
	c.misfits = document.Decode(&given, nil)
	c.requireField(given.Driver != "", field.NewPath("driver"), exampleDriver)
	c.driver = c.driverName(given.Driver, "driver")
	for i := range given.Mappings {
		c.addMapping(&given.Mappings[i], field.NewPath("mappings").Index(i))
	}
	adapted, err := c.validateDrafts()
	if err != nil {
		return nil, err
	}
	if len(adapted.Templates) > 0 {
		adapted.Classes = []resourcev1.DeviceClass{deviceClass(given.Driver, c.driver)}
	}
	return adapted, nil
}

func (c *configMap) addMapping(given *mapping, path *field.Path) {
	name := path.Child("name")
	if !c.requireField(given.Name != "", name, "the name of the mapping, for example h100-nodes") || !c.takeName(given.Name, name) {
		return
	}
	d := newDraft(templateName(configMapName, given.Name), c.driver, configMapPriority)
	d.incomplete = c.misfits.Hides(path.String())
	devicesPath := path.Child("resourceSlice", "devices")
	d.origins = map[string]string{"spec.driver": "driver", "spec.devices": devicesPath.String(), "metadata.name": name.String()}
	d.template.Spec.PoolName = defaults.PoolName + "-device-pool"
	d.template.Spec.SliceLabels = map[string]string{"kwok.x-k8s.io/managed-by": "dra-kwok-driver", "kwok.x-k8s.io/node": defaults.PoolName}
	c.requireLabels(d, &given.NodeSelector, path.Child("nodeSelector"))
	for i := range given.ResourceSlice.Devices {
		c.addDevice(d, &given.ResourceSlice.Devices[i], devicesPath.Index(i))
	}
	c.drafts = append(c.drafts, d)
}

// addDevice adds a group of devices.
func (c *configMap) addDevice(d *draft, given *mappedDevice, path *field.Path) {
	c.checkName(given.Name, path.Child("name"))
	device := v1alpha1.DeviceTemplate{Name: given.Name, Count: given.Count, Attributes: map[resourcev1.QualifiedName]v1alpha1.Attribute{}}
	names := c.attributeNames(maps.Keys(given.Attributes), path.Child("attributes"))
	for _, name := range slices.Sorted(maps.Keys(names)) {
		at, value := path.Child("attributes").Key(string(name)), given.Attributes[name]
		if c.requireField(value != nil, at, "the value of the attribute, a text") {
			attribute := v1alpha1.Attribute{Type: v1alpha1.AttributeString, Value: string(*value)}
			device.Attributes[names[name]] = c.literalAttribute(attribute, at)
		}
	}
	d.addDevice(device, path)
}

// deviceClass returns the class of all devices of a driver. Its name is in lower case. Pods request the
// driver's name as the document has it, if it can name an extended resource.
func deviceClass(given, driver string) resourcev1.DeviceClass {
	requested := given
	if errs := validate.ExtendedResourceName(context.Background(), operation.Operation{}, nil, &given, nil); len(errs) > 0 {
		requested = strings.ToLower(driver) + "/device"
	}
	return resourcev1.DeviceClass{
		TypeMeta:   metav1.TypeMeta{APIVersion: resourcev1.SchemeGroupVersion.String(), Kind: "DeviceClass"},
		ObjectMeta: metav1.ObjectMeta{Name: strings.ToLower(driver)},
		Spec: resourcev1.DeviceClassSpec{
			Selectors: []resourcev1.DeviceSelector{{
				CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", driver)},
			}},
			ExtendedResourceName: &requested,
		},
	}
}
