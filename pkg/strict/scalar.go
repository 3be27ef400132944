package strict

import (
	"encoding/json"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// scalar is a number or a bool.
type scalar struct {
	// json is a json.Number or a bool. A number with a fraction is as it is written:
	// 9.0, which on its way to JSON becomes 9, an integer. Who writes a version so is
	// to be told.
	json any
	// written is the scalar as the document has it: 0x10 or yes, which in JSON are 16
	// and true. It is empty where that is not known.
	written string
}

// MarshalJSON implements json.Marshaler.
func (s scalar) MarshalJSON() ([]byte, error) { return json.Marshal(s.json) }

// asWritten puts scalars in place of all numbers and bools.
func asWritten(value any, node *yaml.Node) any {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			v[key] = asWritten(inner, valueOf(node, key))
		}
	case []any:
		for i, inner := range v {
			item := &yaml.Node{}
			if node.Kind == yaml.SequenceNode && i < len(node.Content) {
				item = node.Content[i]
			}
			v[i] = asWritten(inner, item)
		}
	case bool:
		return scalar{json: v, written: node.Value}
	case json.Number:
		if isSame(v, node) {
			v = json.Number(node.Value)
		}
		return scalar{json: v, written: node.Value}
	}
	return value
}

// valueOf finds the value of a key, or an empty node.
func valueOf(node *yaml.Node, key string) *yaml.Node {
	if node.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == key {
				return node.Content[i+1]
			}
		}
	}
	return &yaml.Node{}
}

// isSame reports whether a node is the number, in a form that JSON has for it.
func isSame(number json.Number, node *yaml.Node) bool {
	if node.ShortTag() != "!!float" || !json.Valid([]byte(node.Value)) {
		return false
	}
	written, err := strconv.ParseFloat(node.Value, 64)
	read, readErr := number.Float64()
	return err == nil && readErr == nil && written == read
}

// plain is a string or number as it is written.
func plain(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case scalar:
		return plain(v.json)
	}
	return ""
}
