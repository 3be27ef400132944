package check

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// place is a document and its position.
type place struct {
	file string
	// line is the line of the file at which the text begins that the node is parsed from.
	line int
	data []byte
	// node is the object. It is nil if the document is not YAML.
	node *yaml.Node
	// name names the object if the node does not.
	name string
	// fixed makes line the line of every field: the document is part of a text of another form.
	fixed bool
}

// sourceName names the place in errors.
func (p *place) sourceName() string {
	return fmt.Sprintf("%s:%d", p.file, p.lineOf(p.node))
}

func (p *place) lineOf(node *yaml.Node) int {
	if node == nil || p.fixed {
		return p.line
	}
	return p.line + node.Line - 1
}

// objectName names the object.
func (p *place) objectName() string {
	kind, name := textAt(p.node, "kind"), textAt(p.node, "metadata", "name")
	switch {
	case p.name != "":
		return p.name
	case kind == "":
		return ""
	case name == "":
		return kind
	}
	return fmt.Sprintf("%s %q", kind, name)
}

// newFinding makes a finding about a field. Its line is that of the field's key, or, for a missing field, that of
// the last key on the way to it.
func (p *place) newFinding(object, path, message string) Finding {
	node, shown := p.node, p.node
	for _, segment := range splitPath(path) {
		if node == nil {
			break
		}
		var key *yaml.Node
		if key, node = childOf(node, segment); node == nil {
			break
		}
		shown = cmp.Or(key, node)
	}
	return Finding{File: p.file, Line: p.lineOf(shown), Object: object, Field: path, Message: message}
}

// splitPath splits the path of a field: names, and keys or indices in brackets.
func splitPath(path string) []string {
	var all []string
	for path != "" {
		end := strings.IndexAny(path, ".[")
		switch {
		case end < 0:
			return append(all, path)
		case end > 0:
			all = append(all, path[:end])
		}
		if path[end] == '.' {
			path = path[end+1:]
			continue
		}
		key, rest, _ := strings.Cut(path[end+1:], "]")
		all, path = append(all, key), strings.TrimPrefix(rest, ".")
	}
	return all
}

// childOf is the key and the value of a field, or of an item of a list.
func childOf(node *yaml.Node, segment string) (key, value *yaml.Node) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == segment {
				return node.Content[i], node.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		if index, err := strconv.Atoi(segment); err == nil && index >= 0 && index < len(node.Content) {
			return nil, node.Content[index]
		}
	}
	return nil, nil
}

// valueAt is the value of a field, or nil.
func valueAt(node *yaml.Node, names ...string) *yaml.Node {
	for _, name := range names {
		if node == nil {
			return nil
		}
		_, node = childOf(node, name)
	}
	return node
}

// textAt is the text of a field, or empty.
func textAt(node *yaml.Node, names ...string) string {
	found := valueAt(node, names...)
	if found == nil || found.Kind != yaml.ScalarNode {
		return ""
	}
	return found.Value
}
