package inventory

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
	"unique"

	resourcev1 "k8s.io/api/resource/v1"
)

// Facts are the attributes and capacities of a slice's devices, without what is of one
// device alone, such as a UUID. So slices of all nodes of a kind say the same, and each
// is kept once, encoded.
type Facts struct {
	encoded unique.Handle[string]
}

// What drivers call these attributes; the first that a device has counts.
var (
	uuids    = []string{"uuid", "serial", "deviceID", "deviceId", "resource.kubernetes.io/pciBusID", "pciAddress"}
	products = []string{"productName", "model", "product", "deviceType", "type"}
	memories = []string{"memory", "hbm", "memorySize"}
)

// own are the last parts of the names, in lower case, of attributes that each device has
// a value of its own of.
var own = map[string]bool{
	"uuid": true, "parentuuid": true, "serial": true, "serialnumber": true, "sn": true, "guid": true, "nodeguid": true,
	"mac": true, "macaddress": true, "hardwareaddress": true, "ipv4": true, "ipv6": true, "ip": true,
}

// FactsOf keeps the facts of the devices of a slice.
func FactsOf(spec *resourcev1.ResourceSliceSpec) Facts {
	kept := resourcev1.ResourceSliceSpec{Devices: make([]resourcev1.Device, len(spec.Devices))}
	node, some := "", false
	if spec.NodeName != nil {
		node = *spec.NodeName
	}
	for i := range spec.Devices {
		device := &spec.Devices[i]
		kept.Devices[i] = resourcev1.Device{Attributes: common(device.Attributes, node), Capacity: amounts(device.Capacity)}
		some = some || len(kept.Devices[i].Attributes)+len(kept.Devices[i].Capacity) > 0
	}
	if !some {
		return Facts{}
	}
	data, err := kept.Marshal()
	if err != nil {
		panic(fmt.Sprintf("encode what was decoded: %v", err))
	}
	return Facts{unique.Make(string(data))}
}

// common are the attributes without those of one device alone.
func common(all map[resourcev1.QualifiedName]resourcev1.DeviceAttribute, node string) map[resourcev1.QualifiedName]resourcev1.DeviceAttribute {
	kept := make(map[resourcev1.QualifiedName]resourcev1.DeviceAttribute, len(all))
	for name, value := range all {
		last := string(name[strings.LastIndexByte(string(name), '/')+1:])
		ofNode := value.StringValue != nil && names(*value.StringValue, node)
		if !own[strings.ToLower(last)] && !ofNode {
			kept[name] = value
		}
	}
	return kept
}

// names reports whether a text has the name of a node in it, as a word.
func names(text, node string) bool {
	if node == "" {
		return false
	}
	before, after, found := strings.Cut(text, node)
	last, _ := utf8.DecodeLastRuneInString(before)
	next, _ := utf8.DecodeRuneInString(after)
	letter := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	return found && !letter(last) && !letter(next)
}

func amounts(all map[resourcev1.QualifiedName]resourcev1.DeviceCapacity) map[resourcev1.QualifiedName]resourcev1.DeviceCapacity {
	kept := make(map[resourcev1.QualifiedName]resourcev1.DeviceCapacity, len(all))
	for name, offered := range all {
		kept[name] = resourcev1.DeviceCapacity{Value: offered.Value}
	}
	return kept
}

// decode returns devices without names, or none where there are no facts.
func (f Facts) decode() []resourcev1.Device {
	if f == (Facts{}) {
		return nil
	}
	spec := &resourcev1.ResourceSliceSpec{}
	if err := spec.Unmarshal([]byte(f.encoded.Value())); err != nil {
		panic(fmt.Sprintf("decode what was encoded: %v", err))
	}
	return spec.Devices
}

// Description is what a device is.
type Description struct {
	// Whole is the device that this one is a part of.
	Whole string `json:"whole,omitempty"`
	// Product and Memory are those of the attributes and capacities that say so.
	Product string `json:"product,omitempty"`
	Memory  string `json:"memory,omitempty"`
	// UUID, or what else tells the device from all others, is only there where the whole
	// device is known.
	UUID       string            `json:"uuid,omitempty"`
	Attributes map[string]string `json:"attributes,omitempty"`
	Capacity   map[string]string `json:"capacity,omitempty"`
}

// Describe describes a device of a driver.
func Describe(driver string, device *resourcev1.Device) Description {
	d := Description{
		UUID:    first(uuids, driver, device.Attributes, attributeText),
		Product: first(products, driver, device.Attributes, attributeText),
		Memory:  first(memories, driver, device.Capacity, capacityText),
	}
	if len(device.Attributes) > 0 {
		d.Attributes = texts(device.Attributes, attributeText)
	}
	if len(device.Capacity) > 0 {
		d.Capacity = texts(device.Capacity, capacityText)
	}
	return d
}

func texts[T any](values map[resourcev1.QualifiedName]T, show func(T) string) map[string]string {
	all := make(map[string]string, len(values))
	for name, value := range values {
		all[string(name)] = show(value)
	}
	return all
}

// first finds the first of the names that there is, with the driver's domain or
// without.
func first[T any](names []string, driver string, values map[resourcev1.QualifiedName]T, show func(T) string) string {
	for _, name := range names {
		for _, whole := range []string{name, driver + "/" + name} {
			if value, found := values[resourcev1.QualifiedName(whole)]; found {
				return show(value)
			}
		}
	}
	return ""
}

func capacityText(c resourcev1.DeviceCapacity) string { return c.Value.String() }

func attributeText(a resourcev1.DeviceAttribute) string {
	switch {
	case a.StringValue != nil:
		return *a.StringValue
	case a.VersionValue != nil:
		return *a.VersionValue
	case a.IntValue != nil:
		return fmt.Sprint(*a.IntValue)
	case a.BoolValue != nil:
		return fmt.Sprint(*a.BoolValue)
	}
	return listText(a)
}

// listText is an attribute with several values.
func listText(a resourcev1.DeviceAttribute) string {
	all := slices.Concat(a.StringValues, a.VersionValues)
	for _, value := range a.IntValues {
		all = append(all, fmt.Sprint(value))
	}
	for _, value := range a.BoolValues {
		all = append(all, fmt.Sprint(value))
	}
	return strings.Join(all, ", ")
}
