package config

import (
	"encoding/json"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// float finds a number with a fraction in YAML.
var float = regexp.MustCompile(`\d\.\d`)

// restoreFloats puts numbers with a fraction back as they are written: 9.0,
// which on its way to JSON becomes 9, an integer, and 8.60, which becomes 8.6.
// Who writes a version so is to be told.
func restoreFloats(value any, document []byte) any {
	var node yaml.Node
	if !float.Match(document) || yaml.Unmarshal(document, &node) != nil || len(node.Content) == 0 {
		return value
	}
	return restore(value, node.Content[0])
}

func restore(value any, node *yaml.Node) any {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	switch v := value.(type) {
	case map[string]any:
		for i := 0; node.Kind == yaml.MappingNode && i+1 < len(node.Content); i += 2 {
			key := node.Content[i].Value
			if inner, has := v[key]; has {
				v[key] = restore(inner, node.Content[i+1])
			}
		}
	case []any:
		for i := 0; node.Kind == yaml.SequenceNode && i < min(len(v), len(node.Content)); i++ {
			v[i] = restore(v[i], node.Content[i])
		}
	case json.Number:
		if same(v, node) {
			return json.Number(node.Value)
		}
	}
	return value
}

// same tells whether a node is the number, in the form that JSON has for it.
func same(number json.Number, node *yaml.Node) bool {
	if node.Kind != yaml.ScalarNode || node.Tag != "!!float" || !json.Valid([]byte(node.Value)) {
		return false
	}
	written, err := strconv.ParseFloat(node.Value, 64)
	read, readErr := number.Float64()
	return err == nil && readErr == nil && written == read
}
