package inventory

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unique"

	resourcev1 "k8s.io/api/resource/v1"
)

// Description is what a device is.
type Description struct {
	// Whole is the device that this one is a part of.
	Whole string `json:"whole,omitempty"`
	// Product and Memory are those of the attributes and capacities that say so.
	Product string `json:"product,omitempty"`
	Memory  string `json:"memory,omitempty"`
	// UUID, or the serial number or address that no other device has, is not known of a kind.
	UUID       string            `json:"uuid,omitempty"`
	Attributes map[string]string `json:"attributes,omitempty"`
	Capacity   map[string]string `json:"capacity,omitempty"`
}

// What drivers call these attributes and capacities; the first that a device has counts. A model of
// a bus, such as deviceID, is no UUID, and neither is a place, such as pciBusID, which every node
// of a kind has. What a device is for, such as its type, is no product.
var (
	uuids    = []string{"uuid", "UUID", "serial", "serialNumber", "SN", "guid", "nodeGUID", "mac", "macAddress", "hardwareAddress"}
	products = []string{"productName", "model", "product", "deviceType", "pciDevice", "accelerator", "instanceType"}
	memories = []string{"memory", "hbm", "memorySize"}
)

// Describe describes a device of a driver, which is among the devices of a slice.
func Describe(driver string, device *resourcev1.Device, slice []resourcev1.Device) Description {
	known := Identities{}
	known.Add(driver, "", slice)
	return known.Describe(driver, device)
}

// Identities are the values of UUIDs and the like, each with the device that has it, or with no name if several
// have it: a value of several devices is none of one.
type Identities map[identity]string

type identity struct{ driver, name, value string }

// Add records the identities of the devices of a pool.
func (known Identities) Add(driver, pool string, devices []resourcev1.Device) {
	for i := range devices {
		for name, attribute := range devices[i].Attributes {
			id := identity{driver, strings.TrimPrefix(string(name), driver+"/"), attributeText(attribute)}
			if !slices.Contains(uuids, id.name) {
				continue
			}
			device := pool + "/" + devices[i].Name
			if other, taken := known[id]; taken && other != device {
				device = ""
			}
			known[id] = device
		}
	}
}

// Describe describes a device that was added.
func (known Identities) Describe(driver string, device *resourcev1.Device) Description {
	d := newDescription(driver, textsOf(device.Attributes, attributeText), textsOf(device.Capacity, capacityText))
	for _, name := range uuids {
		value := firstValue([]string{name}, driver, d.Attributes)
		if value != "" && known[identity{driver, name, value}] != "" {
			d.UUID = value
			break
		}
	}
	return d
}

func newDescription(driver string, attributes, capacity map[string]string) Description {
	return Description{
		Product: marketedName(firstValue(products, driver, attributes)), Memory: firstValue(memories, driver, capacity),
		Attributes: attributes, Capacity: capacity,
	}
}

// marketedName returns the name under which a product is sold. The database of PCI ids has it in
// brackets after the name of the chip: "MT2910 Family [ConnectX-7]".
func marketedName(product string) string {
	if _, name, found := strings.Cut(strings.TrimSuffix(product, "]"), " ["); found {
		return name
	}
	return product
}

func textsOf[T any](values map[resourcev1.QualifiedName]T, show func(T) string) map[string]string {
	all := make(map[string]string, len(values))
	for name, value := range values {
		all[string(name)] = show(value)
	}
	return all
}

// firstValue returns the value of the first name that exists, with or without the driver's domain.
func firstValue(names []string, driver string, values map[string]string) string {
	for _, name := range names {
		for _, whole := range []string{name, driver + "/" + name} {
			if value, found := values[whole]; found {
				return value
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
		return strconv.FormatInt(*a.IntValue, 10)
	case a.BoolValue != nil:
		return strconv.FormatBool(*a.BoolValue)
	}
	return listText(a)
}

// listText joins the values of a list attribute.
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

// computeID sets the id of the kind, a hash of all that its pools have in common.
func (k *Kind) computeID() {
	sum := sha256.New()
	for i := range k.keys {
		key := &k.keys[i]
		parts := []string{key.driver, key.devices.Joined(), "", ""}
		for j, encoded := range []unique.Handle[string]{key.sharing.encoded, key.facts.encoded} {
			if encoded != (unique.Handle[string]{}) {
				parts[j+2] = encoded.Value()
			}
		}
		for _, part := range parts {
			sum.Write(appendText(nil, part))
		}
	}
	k.id = hex.EncodeToString(sum.Sum(nil)[:8])
}

// MarshalJSON implements json.Marshaler: the id, and what the devices are, in their
// order.
func (k *Kind) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		ID      string        `json:"id"`
		Devices []Description `json:"devices"`
	}{k.id, k.Describe()})
}

// Describe describes the devices of the kind, in their order. It decodes them on each call, since
// there may be many kinds.
func (k *Kind) Describe() []Description {
	all := make([]Description, len(k.free))
	begin := 0
	for i, end := range k.ends {
		key := &k.keys[i]
		key.facts.forEachDevice(func(device int, attributes, capacity map[string]string) {
			all[begin+device] = newDescription(key.driver, attributes, capacity)
		})
		begin = end
	}
	for i := range all {
		all[i].Whole = k.Whole(i)
	}
	return all
}
