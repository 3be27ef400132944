package devices

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	sigsjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/internal/devices/gotemplate"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/api/validation"
)

// ClaimStatus is a compiled claimStatus.
type ClaimStatus struct {
	// Ready reports whether prepared devices have the condition Ready.
	Ready bool
	// Writes reports whether claims show anything of a prepared device.
	Writes bool
	// UsesDevice and UsesPods report whether a template reads .Device and .Pods.
	UsesDevice, UsesPods bool

	source *v1alpha1.ClaimStatus
	data   any
	// texts are the templates, in the order of replaceTemplates.
	texts                   []*gotemplate.Text
	usesNode, usesDriverPod bool
}

// Object names an object to templates.
type Object struct {
	Name      string    `json:"name"`
	Namespace string    `json:"namespace"`
	UID       types.UID `json:"uid"`
}

// Allocated is a device that is allocated to a claim, as the templates of claimStatus see it.
type Allocated struct {
	Node *lifecycle.Object `json:"-"`
	// DriverPod returns the driver Pod as templates see it. It is nil for none.
	DriverPod func() (any, error) `json:"-"`
	// Device may be nil where UsesDevice is false.
	Device *resourcev1.Device
	Result *resourcev1.DeviceRequestAllocationResult
	Config []runtime.RawExtension
	Claim  Object
	Pods   []Object
}

// Report is what a claim shows, and the kubelet learns, of a prepared device.
type Report struct {
	Data         *runtime.RawExtension
	NetworkData  *resourcev1.NetworkDeviceData
	CDIDeviceIDs []string
}

// sampleAllocated stands in for an allocated device when templates are checked.
var sampleAllocated = map[string]any{
	"Node":   SampleNode,
	"Device": resourcev1.Device{Name: "gpu-0"},
	"Result": resourcev1.DeviceRequestAllocationResult{Request: "gpu", Driver: "gpu.example.com", Pool: "sample", Device: "gpu-0"},
	"Config": []any{},
	"Claim":  Object{Name: "claim", Namespace: "default", UID: "00000000-0000-0000-0000-000000000000"},
	"Pods":   []Object{{Name: "pod", Namespace: "default", UID: "00000000-0000-0000-0000-000000000000"}},
}

// newClaimStatus compiles a validated claimStatus, and checks its templates by sample data.
func newClaimStatus(source *v1alpha1.ClaimStatus, sample map[string]any, path *field.Path) (*ClaimStatus, field.ErrorList) {
	c := &ClaimStatus{Ready: source.Mode == v1alpha1.ClaimStatusReady, source: source}
	if source.Data != nil {
		if err := sigsjson.UnmarshalCaseSensitivePreserveInts(source.Data.Raw, &c.data); err != nil {
			return nil, field.ErrorList{field.Invalid(path.Child("data"), string(source.Data.Raw), err.Error())}
		}
	}
	c.Writes = c.Ready || c.data != nil || source.NetworkData != nil
	var errs field.ErrorList
	c.replaceTemplates(path, func(text *gotemplate.Text) string {
		errs = append(errs, text.Check(sample)...)
		c.texts = append(c.texts, text)
		c.UsesDevice = c.UsesDevice || text.Reads("Device")
		c.UsesPods = c.UsesPods || text.Reads("Pods")
		c.usesNode = c.usesNode || text.Reads("Node")
		c.usesDriverPod = c.usesDriverPod || text.Reads("DriverPod")
		return text.Source
	})
	return c, errs
}

// replaceTemplates returns what claims show, with all templates replaced, in an order that is always
// the same.
func (c *ClaimStatus) replaceTemplates(path *field.Path, replace func(*gotemplate.Text) string) (data any, network *resourcev1.NetworkDeviceData, cdiDeviceIDs []string) {
	each := gotemplate.ReplaceTemplates(replace)
	data = each.InValue(c.data, path.Child("data"))
	if given := c.source.NetworkData; given != nil {
		at := path.Child("networkData")
		network = &resourcev1.NetworkDeviceData{
			InterfaceName:   each(at.Child("interfaceName"), given.InterfaceName),
			IPs:             each.InList(given.IPs, at.Child("ips")),
			HardwareAddress: each(at.Child("hardwareAddress"), given.HardwareAddress),
		}
	}
	return data, network, each.InList(c.source.CDIDeviceIDs, path.Child("cdiDeviceIDs"))
}

// Render makes the report on a device.
func (c *ClaimStatus) Render(a *Allocated) (*Report, error) {
	given, err := c.dataFor(a)
	if err != nil {
		return nil, err
	}
	path := field.NewPath("spec", "claimStatus")
	next, errs := gotemplate.RenderAll(c.texts, given)
	data, network, ids := c.replaceTemplates(path, next)
	if network != nil {
		errs = append(errs, validation.ValidateNetworkData(network, path.Child("networkData")).ToAggregate())
	}
	for i, id := range ids {
		if id == "" {
			errs = append(errs, field.Required(path.Child("cdiDeviceIDs").Index(i), "the template yields nothing"))
		}
	}
	encoded, err := encodeData(data, path.Child("data"))
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	return &Report{Data: encoded, NetworkData: network, CDIDeviceIDs: ids}, nil
}

// dataFor is what the templates see. The Node is by far its largest part, and only there if a template
// reads it.
func (c *ClaimStatus) dataFor(a *Allocated) (map[string]any, error) {
	if len(c.texts) == 0 {
		return nil, nil
	}
	encoded, err := gotemplate.EncodeValue(a)
	if err != nil {
		return nil, err
	}
	data := encoded.(map[string]any)
	if c.usesNode {
		if data["Node"], err = a.Node.Decoded(); err != nil {
			return nil, err
		}
	}
	if c.usesDriverPod && a.DriverPod != nil {
		data["DriverPod"], err = a.DriverPod()
	}
	return data, err
}

// encodeData encodes the data as JSON. A string has the YAML of an object, or of nothing.
func encodeData(data any, path *field.Path) (*runtime.RawExtension, error) {
	if data == nil {
		return nil, nil
	}
	if text, isText := data.(string); isText {
		if strings.TrimSpace(text) == "" {
			return nil, nil
		}
		var object map[string]any
		asJSON, err := yaml.YAMLToJSON([]byte(text))
		if err == nil {
			err = sigsjson.UnmarshalCaseSensitivePreserveInts(asJSON, &object)
		}
		if err != nil || object == nil {
			return nil, field.Invalid(path, text, "must yield an object in YAML or JSON")
		}
		data = object
	}
	encoded, err := json.Marshal(data)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", path, err)
	}
	if len(encoded) > resourcev1.AllocatedDeviceStatusDataMaxLength {
		return nil, field.TooLong(path, "", resourcev1.AllocatedDeviceStatusDataMaxLength)
	}
	return &runtime.RawExtension{Raw: encoded}, nil
}
