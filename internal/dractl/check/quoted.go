package check

import (
	"fmt"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

var (
	// readsAsInteger and readsAsBool match text that would have another type without quotes.
	readsAsInteger = regexp.MustCompile(`^-?[0-9]+$`)
	readsAsBool    = regexp.MustCompile(`^(?:true|false)$`)
	// calculates matches a template that yields a number and nothing else.
	calculates = regexp.MustCompile(`^\{\{-? *(?:\.Index|(?:add|add1|sub|mul|div|mod|int|int64|len|max|min) )[^|}]*\}\}$`)
)

// noteQuoted warns of attributes of a template that are strings only because of their quotes:
// a selector that compares one with a number never matches. Strings of digits are right where a
// real driver publishes them; then the object form says so.
func (c *checker) noteQuoted(p *place) {
	devices := valueAt(p.node, "spec", "devices")
	if devices == nil || textAt(p.node, "kind") != v1alpha1.ResourcePoolTemplateKind {
		return
	}
	note := func(attributes *yaml.Node, path *field.Path) {
		if attributes == nil || attributes.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i+1 < len(attributes.Content); i += 2 {
			name, value := attributes.Content[i].Value, attributes.Content[i+1]
			if message := describeQuoted(value); message != "" {
				c.result.Notes = append(c.result.Notes, p.newFinding(p.objectName(), path.Key(name).String(), message))
			}
		}
	}
	for i, device := range devices.Content {
		path := field.NewPath("spec", "devices").Index(i)
		note(valueAt(device, "attributes"), path.Child("attributes"))
		partitions := valueAt(device, "partitions")
		if partitions == nil {
			continue
		}
		for j, partition := range partitions.Content {
			note(valueAt(partition, "attributes"), path.Child("partitions").Index(j).Child("attributes"))
		}
	}
}

// describeQuoted says what is unclear about a value, if anything is.
func describeQuoted(value *yaml.Node) string {
	if value.Kind == yaml.SequenceNode && len(value.Content) > 0 {
		if first := describeQuoted(value.Content[0]); first != "" {
			return "a list of strings: " + first
		}
	}
	if value.Kind != yaml.ScalarNode || value.ShortTag() != "!!str" {
		return ""
	}
	text := strconv.Quote(value.Value)
	switch {
	case calculates.MatchString(value.Value):
		return fmt.Sprintf("a template yields a string, which no selector finds equal to a number: write {int: %s}, or {string: %s} if a string is meant", text, text)
	case readsAsInteger.MatchString(value.Value):
		return fmt.Sprintf("%s is a string, which no selector finds equal to the number: write %s, or {string: %s} if a string is meant", text, value.Value, text)
	case readsAsBool.MatchString(value.Value):
		return fmt.Sprintf("%s is a string, which no selector finds equal to the bool: write %s, or {string: %s} if a string is meant", text, value.Value, text)
	}
	return ""
}
