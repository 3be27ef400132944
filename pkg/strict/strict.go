// Package strict decodes YAML and JSON documents into Go types. It decodes what
// fits, and names all that does not: the path of each field, its value, what would
// be valid, and what was probably meant.
package strict

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"
)

// Document is a document that has been parsed.
type Document struct {
	// Value is what JSON has of the document: nil, a string, a list, an object, or a
	// number or bool of a type of its own.
	Value any
}

// Items are the items of a list of objects, those of lists in it among them. A list
// of one kind, as the API server has it, says apiVersion and kind for items that do
// not.
func (d Document) Items() (items []Document, isList bool) {
	list, _ := d.Value.(map[string]any)
	kind, _ := list["kind"].(string)
	values, hasItems := list["items"].([]any)
	of, isList := strings.CutSuffix(kind, "List")
	if !isList || !hasItems {
		return nil, false
	}
	for _, value := range values {
		item := Document{Value: value}
		if object, isObject := value.(map[string]any); isObject && of != "" && object["kind"] == nil && object["apiVersion"] == nil {
			object["apiVersion"], object["kind"] = list["apiVersion"], of
		}
		if inner, isList := item.Items(); isList {
			items = append(items, inner...)
			continue
		}
		items = append(items, item)
	}
	return items, true
}

// Parse parses a document. It returns a problem where the document is no valid
// YAML, and the document as far as it can be told all the same.
func Parse(text []byte) (Document, Problems) {
	data, problems := JSON(text)
	if data == nil {
		return Document{}, problems
	}
	var value any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return Document{}, Problems{{Text: "no valid JSON: " + err.Error()}}
	}
	var node yaml.Node
	if yaml.Unmarshal(text, &node) != nil || len(node.Content) == 0 {
		node.Content = []*yaml.Node{{}}
	}
	return Document{Value: asWritten(value, node.Content[0])}, problems
}

// JSON converts a document into JSON. It returns a problem where the document is no
// valid YAML, and the JSON as far as it can be told all the same.
func JSON(text []byte) ([]byte, Problems) {
	if problems := checkText(text); len(problems) > 0 {
		return nil, problems
	}
	if problem := Trailing(text); problem != nil {
		return nil, Problems{*problem}
	}
	data, err := sigsyaml.YAMLToJSONStrict(text)
	switch {
	case err == nil:
		return data, nil
	case json.Valid(text) && !twice.MatchString(err.Error()):
		return text, nil // YAML lacks the escapes of JSON for characters beyond 16 bits
	}
	data, _ = sigsyaml.YAMLToJSON(text)
	return data, Problems{explain(err, text)}
}

var (
	// where is the place of an error of the YAML library.
	where = regexp.MustCompile(`^(?:error converting YAML to JSON: )?(?:yaml: )?(?:unmarshal errors:\s*)?(?:line (\d+): )?`)
	// twice is a key that is there twice.
	twice = regexp.MustCompile(`\bkey (".*") already set in map`)
	// tab is a tab in the indentation.
	tab = regexp.MustCompile(`(?m)^ *\t`)
)

// explain says what the matter is with a text that is no YAML: the line, the
// YAML library's error, and the usual cause.
func explain(err error, document []byte) Problem {
	text := err.Error()
	found := where.FindStringSubmatch(text)
	rest, _, _ := strings.Cut(strings.TrimPrefix(text, found[0]), "\n")
	line, _ := strconv.Atoi(found[1])
	return Problem{Line: line, Text: cause(rest, document)}
}

func cause(rest string, document []byte) string {
	key := twice.FindStringSubmatch(rest)
	switch template := bareTemplate(rest, document); {
	case key != nil:
		return fmt.Sprintf("the field %s is there twice: remove one", key[1])
	case template != "":
		return fmt.Sprintf("no valid YAML: put templates in quotes, \"%s\"", template)
	case strings.Contains(rest, "cannot start any token") && tab.Match(document):
		return "no valid YAML: indent with blanks, not with tabs"
	case strings.Contains(rest, "mapping values are not allowed"):
		return `no valid YAML: put a value that has ": " in it in quotes`
	}
	return "no valid YAML: " + rest
}

// bareTemplate finds a template without quotes, which to YAML is an object, where
// the error may be due to it.
func bareTemplate(problem string, document []byte) string {
	if !strings.HasPrefix(problem, "invalid map key") && !strings.HasPrefix(problem, "did not find expected") {
		return ""
	}
	for line := range strings.Lines(string(document)) {
		before, after, has := strings.Cut(line, "{{")
		action, _, ends := strings.Cut(after, "}}")
		quoted := strings.Count(before, `"`)%2 == 1 || strings.Count(before, "'")%2 == 1
		if has && ends && !quoted && strings.TrimRight(before, " :,[{-") != strings.TrimRight(before, " ") {
			return "{{" + action + "}}"
		}
	}
	return ""
}

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
		if node.ShortTag() == "!!float" && json.Valid([]byte(node.Value)) {
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
