package generate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kwok-dra/kwok-dra/internal/devices/gotemplate"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// Modelled is a template of a pool of one node, for other nodes like it.
type Modelled struct {
	*v1alpha1.ResourcePoolTemplate

	// Pool is the name of the pool.
	Pool string
	// Object is the template as it is printed.
	Object *unstructured.Unstructured
}

// Model makes templates of the slices of one node, for other nodes like it. Each node gets its own name and
// UUIDs. The notes say where the templates yield something else than the slices, and what is left out.
func Model(ctx context.Context, node *corev1.Node, published []*resourcev1.ResourceSlice) (made []Modelled, notes []string, err error) {
	m := &model{node: node, numbers: map[string]int{}, made: map[string]string{}, pools: map[string]string{}}
	if published, err = m.prepareSlices(published); err != nil {
		return nil, nil, err
	}
	pools, left := groupPools(published, nil)
	f, _, failed, differ, err := newFleet(ctx, m, []*corev1.Node{node}, pools)
	if err != nil {
		return nil, nil, err
	}
	objects, err := f.encodeTemplates()
	for i, object := range objects {
		made = append(made, Modelled{f.templates[i], m.pools[f.sources[i][0].name], object})
	}
	for _, one := range append(left, failed...) {
		notes = append(notes, fmt.Sprintf("%s %s is left out: %s", one.kind, one.name, one.reason))
	}
	return made, slices.Concat(m.notes, notes, differ), err
}

// model is the node that templates are made of.
type model struct {
	node *corev1.Node
	// numbers maps the UUIDs of the node to their numbers, in the order in which they appear. made maps the
	// UUIDs that templates make from these numbers to marked text.
	numbers map[string]int
	made    map[string]string
	// pools are the names that pools have, by those that they get.
	pools map[string]string
	notes []string
}

// Marks around the number of a UUID. They are in no attribute.
const numberBegin, numberEnd = "\x01", "\x02"

var (
	uuidPattern = regexp.MustCompile(`[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}`)
	markedUUID  = regexp.MustCompile(numberBegin + `(\d+|\{\{ (.+?) \}\})` + numberEnd)
	errMarks    = errors.New("an attribute has a control character")
)

// prepareSlices returns the slices that the templates must yield on the node.
func (m *model) prepareSlices(published []*resourcev1.ResourceSlice) ([]*resourcev1.ResourceSlice, error) {
	all := make([]*resourcev1.ResourceSlice, len(published))
	var same []string // serial numbers and addresses
	for i, slice := range published {
		all[i] = slice.DeepCopy()
		spec := &all[i].Spec
		was := spec.Pool.Name // pools of nodes differ in their names
		if replaceWord(was, m.node.Name, marker) == was {
			spec.Pool.Name = m.node.Name + "-" + was
			if _, known := m.pools[spec.Pool.Name]; !known {
				m.notes = append(m.notes, fmt.Sprintf("pool %s is called NODE-%s, or nodes would share it", was, was))
			}
		}
		m.pools[spec.Pool.Name] = was
		for j := range all[i].Spec.Devices {
			own, err := m.prepareDevice(slice.Spec.Driver, &all[i].Spec.Devices[j], slice.Spec.Devices)
			if err != nil {
				return nil, fmt.Errorf("slice %s, %w", slice.Name, err)
			}
			same = append(same, own...)
		}
	}
	if len(m.numbers) > 0 {
		m.notes = append(m.notes, "UUIDs in attributes become UUIDs of each node; write them out where nodes share them")
	}
	if len(same) > 0 {
		m.notes = append(m.notes, fmt.Sprintf("the serial numbers or addresses %q are those of node %s on all nodes: give each node its own, as in {{ uuid .Node.metadata.uid .Index | trunc 8 }}",
			same, m.node.Name))
	}
	return all, nil
}

// prepareDevice renumbers the UUIDs of a device, and returns its serial number or address if all nodes get
// that as it is.
func (m *model) prepareDevice(driver string, device *resourcev1.Device, others []resourcev1.Device) (same []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(device.Attributes)) {
		attribute := device.Attributes[name]
		if err := m.renumberUUIDs(&attribute); err != nil {
			return nil, fmt.Errorf("device %s, attribute %s: %w", device.Name, name, err)
		}
		device.Attributes[name] = attribute
	}
	own := inventory.Describe(driver, device, others).UUID
	if own == "" || uuidPattern.MatchString(own) || replaceWord(own, m.node.Name, marker) != own {
		return nil, nil
	}
	return []string{own}, nil
}

// renumberUUIDs replaces the UUIDs of an attribute by those that templates make.
func (m *model) renumberUUIDs(attribute *resourcev1.DeviceAttribute) error {
	var err error
	each := func(text *string) {
		if strings.ContainsAny(*text, marker+numberBegin+numberEnd) {
			err = errMarks
		}
		*text = uuidPattern.ReplaceAllStringFunc(*text, func(found string) string {
			number, known := m.numbers[found]
			if !known {
				number = len(m.numbers)
				m.numbers[found] = number
			}
			made, failed := gotemplate.UUID(m.node.UID, number)
			m.made[made] = numberBegin + strconv.Itoa(number) + numberEnd
			err = errors.Join(err, failed)
			return made
		})
	}
	if attribute.StringValue != nil {
		each(attribute.StringValue)
	}
	for i := range attribute.StringValues {
		each(&attribute.StringValues[i])
	}
	return err
}

// templateText is a template that yields the values of devices side by side, on each node
// its own.
func (m *model) templateText(values []string) string {
	marked := make([]string, len(values))
	for i, value := range values {
		value = replaceWord(value, m.node.Name, marker)
		marked[i] = uuidPattern.ReplaceAllStringFunc(value, func(found string) string { return m.made[found] })
	}
	text := indexTemplate(marked)
	text = markedUUID.ReplaceAllStringFunc(text, func(found string) string {
		number := strings.Trim(found, numberBegin+numberEnd)
		if inner, isAction := strings.CutPrefix(number, "{{ "); isAction {
			number = strings.TrimSuffix(inner, " }}")
			if strings.Contains(number, " ") {
				number = "(" + number + ")"
			}
		}
		return "{{ uuid .Node.metadata.uid " + number + " }}"
	})
	text = strings.ReplaceAll(text, marker, "{{ .Node.metadata.name }}")
	if !strings.Contains(text, `\x0`) {
		return text
	}
	note := fmt.Sprintf("the values %q are those of node %s on all nodes", values, m.node.Name)
	if !slices.Contains(m.notes, note) {
		m.notes = append(m.notes, note)
	}
	return indexTemplate(values)
}

// replaceWord replaces a word where letters and digits are not next to it.
func replaceWord(text, word, by string) string {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, word)
		if !found {
			return out.String() + text
		}
		out.WriteString(before)
		if so := out.String(); so != "" && IsAlphanumeric(so[len(so)-1]) || after != "" && IsAlphanumeric(after[0]) {
			out.WriteString(word)
		} else {
			out.WriteString(by)
		}
		text = after
	}
}

// IsAlphanumeric reports whether a character is an ASCII letter or digit.
func IsAlphanumeric(char byte) bool {
	return char >= '0' && char <= '9' || char >= 'a' && char <= 'z' || char >= 'A' && char <= 'Z'
}
