package devices

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	sigsjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/api/validation"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
)

// ClaimStatus is the claimStatus of a ResourcePoolTemplate made ready for use.
type ClaimStatus struct {
	// Ready reports whether prepared devices have the condition Ready.
	Ready bool
	// UsesDevice and UsesPods tell whether a template reads .Device and .Pods.
	UsesDevice, UsesPods bool

	source *v1alpha1.ClaimStatus
	data   any
	// programs are those of the templates, in the order of walk.
	programs          []*program
	usesNode, usesPod bool
}

// Object names an object to templates.
type Object struct {
	Name      string    `json:"name"`
	Namespace string    `json:"namespace"`
	UID       types.UID `json:"uid"`
}

// Allocated is a device that has been allocated to a claim, as the templates of
// claimStatus see it.
type Allocated struct {
	Node *lifecycle.Object `json:"-"`
	// DriverPod is the driver Pod as templates see it, or nil.
	DriverPod any `json:"-"`
	// Device may be nil where UsesDevice is false.
	Device *resourcev1.Device
	Result *resourcev1.DeviceRequestAllocationResult
	Config []runtime.RawExtension
	Claim  Object
	Pods   []Object
}

// Report is what a claim, and the kubelet, learn about a prepared device.
type Report struct {
	Data         *runtime.RawExtension
	NetworkData  *resourcev1.NetworkDeviceData
	CDIDeviceIDs []string
}

// sampleAllocated stands in for an allocated device when templates are checked.
var sampleAllocated = map[string]any{
	"Node":   sample,
	"Device": resourcev1.Device{Name: "gpu-0"},
	"Result": resourcev1.DeviceRequestAllocationResult{Request: "gpu", Driver: "gpu.example.com", Pool: "sample", Device: "gpu-0"},
	"Config": []any{},
	"Claim":  Object{Name: "claim", Namespace: "default", UID: "00000000-0000-0000-0000-000000000000"},
	"Pods":   []Object{{Name: "pod", Namespace: "default", UID: "00000000-0000-0000-0000-000000000000"}},
}

// newClaimStatus parses the templates of a validated claimStatus, and checks them by
// samples.
func newClaimStatus(source *v1alpha1.ClaimStatus, samples map[string]any, path *field.Path) (*ClaimStatus, field.ErrorList) {
	c := &ClaimStatus{Ready: source.Mode == v1alpha1.ClaimStatusReady, source: source}
	if source.Data != nil {
		if err := sigsjson.UnmarshalCaseSensitivePreserveInts(source.Data.Raw, &c.data); err != nil {
			return nil, field.ErrorList{field.Invalid(path.Child("data"), string(source.Data.Raw), err.Error())}
		}
	}
	var errs field.ErrorList
	c.walk(path, func(p place) string {
		errs = append(errs, p.check(samples)...)
		c.programs = append(c.programs, p.program)
		c.UsesDevice = c.UsesDevice || reads(p.value, "Device")
		c.UsesPods = c.UsesPods || reads(p.value, "Pods")
		c.usesNode = c.usesNode || reads(p.value, "Node")
		c.usesPod = c.usesPod || reads(p.value, "DriverPod")
		return p.value
	})
	return c, errs
}

// everything finds a template that hands on all that it is given, or, within
// range and with, a part of it.
var everything = regexp.MustCompile(`(^|[\s({|=])[.$]($|[\s)}|])`)

// reads reports whether a template may read a field of what it is given. When in
// doubt it says yes: that costs time, and no write.
func reads(template, name string) bool {
	return strings.Contains(template, name) || everything.MatchString(template)
}

// walk goes through all strings that are templates, always in the same order, and
// returns the results.
func (c *ClaimStatus) walk(path *field.Path, render func(place) string) (any, *resourcev1.NetworkDeviceData, []string) {
	each := eachTemplate(render)
	data := walkValue(c.data, path.Child("data"), each)
	var network *resourcev1.NetworkDeviceData
	if given := c.source.NetworkData; given != nil {
		at := path.Child("networkData")
		network = &resourcev1.NetworkDeviceData{
			InterfaceName:   each(at.Child("interfaceName"), given.InterfaceName),
			IPs:             walkList(given.IPs, at.Child("ips"), each),
			HardwareAddress: each(at.Child("hardwareAddress"), given.HardwareAddress),
		}
	}
	return data, network, walkList(c.source.CDIDeviceIDs, path.Child("cdiDeviceIDs"), each)
}

func walkValue(value any, path *field.Path, each func(path *field.Path, value string) string) any {
	switch v := value.(type) {
	case string:
		return each(path, v)
	case []any:
		list := slices.Clone(v)
		for i := range v {
			list[i] = walkValue(v[i], path.Index(i), each)
		}
		return list
	case map[string]any:
		object := maps.Clone(v)
		for _, key := range slices.Sorted(maps.Keys(v)) {
			object[key] = walkValue(v[key], path.Key(key), each)
		}
		return object
	}
	return value
}

func walkList(values []string, path *field.Path, each func(path *field.Path, value string) string) []string {
	list := slices.Clone(values)
	for i := range list {
		list[i] = each(path.Index(i), list[i])
	}
	return list
}

// Writes reports whether a claim shows anything of a prepared device.
func (c *ClaimStatus) Writes() bool {
	return c.Ready || c.data != nil || c.source.NetworkData != nil
}

// Render makes the report on a device.
func (c *ClaimStatus) Render(a *Allocated) (*Report, error) {
	given, err := c.given(a)
	if err != nil {
		return nil, err
	}
	rendered := newTexts(c.programs, given)
	path := field.NewPath("spec", "claimStatus")
	data, network, ids := c.walk(path, rendered.next)
	errs := rendered.errs
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

// given leaves out the Node where no template reads it: it is by far the largest part.
func (c *ClaimStatus) given(a *Allocated) (map[string]any, error) {
	if len(c.programs) == 0 {
		return nil, nil
	}
	decoded, err := asJSON(a)
	if err != nil {
		return nil, err
	}
	given := decoded.(map[string]any)
	if c.usesNode {
		given["Node"], err = a.Node.Decoded()
	}
	if c.usesPod && a.DriverPod != nil {
		given["DriverPod"] = a.DriverPod
	}
	return given, err
}

// encodeData makes the JSON of the data. A string is the YAML of an object, or of nothing.
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
