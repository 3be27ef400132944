package inventory

import (
	"encoding/binary"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
	"unique"

	resourcev1 "k8s.io/api/resource/v1"
)

// Facts are the attributes and capacities of a slice's devices, without what is of one
// device alone, such as a UUID. So slices of all nodes of a kind say the same, and each
// is kept once, encoded: for each device the attributes and then the capacities, as how
// many there are, and their names and values, each with its length before it.
type Facts struct {
	encoded unique.Handle[string]
}

// own are the names, without domain, of attributes whose value belongs to one device.
var own = slices.Concat(uuids, []string{"parentUUID", "ip", "ipv4", "ipv6"})

// FactsOf encodes the facts of the devices of a slice.
func FactsOf(spec *resourcev1.ResourceSliceSpec) Facts {
	node := ""
	if spec.NodeName != nil {
		node = *spec.NodeName
	}
	common := func(name resourcev1.QualifiedName, a resourcev1.DeviceAttribute) bool {
		return !slices.Contains(own, string(name[strings.LastIndexByte(string(name), '/')+1:])) && (a.StringValue == nil || !mentionsNode(*a.StringValue, node))
	}
	all := func(resourcev1.QualifiedName, resourcev1.DeviceCapacity) bool { return true }
	data := make([]byte, 0, 256*len(spec.Devices))
	some := false
	for i := range spec.Devices {
		device := &spec.Devices[i]
		data = appendTexts(data, device.Attributes, common, attributeText)
		data = appendTexts(data, device.Capacity, all, capacityText)
		some = some || len(device.Attributes)+len(device.Capacity) > 0
	}
	if !some {
		return Facts{}
	}
	return Facts{unique.Make(string(data))}
}

// mentionsNode reports whether a text contains the name of a node as a word.
func mentionsNode(text, node string) bool {
	if node == "" {
		return false
	}
	before, after, found := strings.Cut(text, node)
	last, _ := utf8.DecodeLastRuneInString(before)
	next, _ := utf8.DecodeRuneInString(after)
	letter := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	return found && !letter(last) && !letter(next)
}

func appendTexts[T any](data []byte, values map[resourcev1.QualifiedName]T, keep func(resourcev1.QualifiedName, T) bool, show func(T) string) []byte {
	kept := make([]resourcev1.QualifiedName, 0, len(values))
	for name, value := range values {
		if keep(name, value) {
			kept = append(kept, name)
		}
	}
	slices.Sort(kept)
	data = binary.AppendUvarint(data, uint64(len(kept)))
	for _, name := range kept {
		data = appendText(appendText(data, string(name)), show(values[name]))
	}
	return data
}

func appendText(data []byte, text string) []byte {
	return append(binary.AppendUvarint(data, uint64(len(text))), text...)
}

// forEachDevice decodes the facts, and calls do for each device.
func (f Facts) forEachDevice(do func(device int, attributes, capacity map[string]string)) {
	if f == (Facts{}) {
		return
	}
	data := []byte(f.encoded.Value())
	number := func() int {
		n, size := binary.Uvarint(data)
		data = data[size:]
		return int(n)
	}
	text := func() string {
		n := number()
		defer func() { data = data[n:] }()
		return string(data[:n])
	}
	texts := func() map[string]string {
		all := map[string]string{}
		for range number() {
			name := text()
			all[name] = text()
		}
		return all
	}
	for device := 0; len(data) > 0; device++ {
		attributes := texts()
		do(device, attributes, texts())
	}
}
