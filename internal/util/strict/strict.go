package strict

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"
)

// Document is a parsed document.
type Document struct {
	// Value is nil, a string, a list, an object, or a number or bool as a scalar.
	Value any
}

// Items returns the items of a list of objects, and those of lists in it. A list of one kind, as
// the API server returns it, gives its apiVersion and kind to items without.
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

// Parse parses a document. It returns a problem if the document is no valid YAML, together with
// as much of the document as can be read.
func Parse(text []byte) (Document, Problems) {
	data, node, problems := parseText(text)
	if data == nil {
		return Document{}, problems
	}
	var value any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return Document{}, Problems{{Text: "no valid JSON: " + err.Error()}}
	}
	return Document{Value: asWritten(value, node)}, problems
}

// JSON converts a document into JSON. It returns a problem if the document is no valid YAML,
// together with as much of the document as can be read.
func JSON(text []byte) ([]byte, Problems) {
	data, _, problems := parseText(text)
	return data, problems
}

// parseText returns a document as JSON, and its node in YAML, which is empty if there is none. It
// refuses texts that are not UTF-8 or have NUL bytes: the YAML library would silently read only a
// part of some of them.
func parseText(text []byte) ([]byte, *yaml.Node, Problems) {
	node := &yaml.Node{}
	if bytes.HasPrefix(text, gzipMagic) {
		return nil, node, Problems{{Line: 1, Text: "the text is compressed by gzip: decompress it"}}
	}
	for at := 0; at < len(text); {
		character, size := utf8.DecodeRune(text[at:])
		problem := ""
		switch {
		case character == utf8.RuneError && size == 1:
			problem = "not UTF-8: save the text as UTF-8, for example with iconv -f latin1 -t utf-8"
		case character == 0:
			problem = "no text: save the text as UTF-8, without NUL bytes"
		}
		if problem != "" {
			line := 1 + bytes.Count(text[:at], []byte("\n"))
			return nil, node, Problems{{Line: line, Text: fmt.Sprintf("the byte 0x%02x at offset %d is %s", text[at], at, problem)}}
		}
		at += size
	}
	first, problem := firstNode(text)
	if problem != nil {
		return nil, node, Problems{*problem}
	}
	if len(first.Content) > 0 {
		node = first.Content[0]
	}
	data, err := sigsyaml.YAMLToJSONStrict(text)
	switch {
	case err == nil:
		return data, node, nil
	case json.Valid(text) && !duplicateKey.MatchString(err.Error()):
		return text, node, nil // YAML lacks the escapes of JSON for characters beyond 16 bits
	}
	data, _ = sigsyaml.YAMLToJSON(text)
	return data, node, Problems{explainYAMLError(err, text)}
}

// gzipMagic begins whatever gzip has compressed.
var gzipMagic = []byte("\x1f\x8b")

var (
	// linePrefix matches what the YAML library puts before a problem, with the line.
	linePrefix = regexp.MustCompile(`^(?:error converting YAML to JSON: )?(?:yaml: )?(?:unmarshal errors:\s*)?(?:line (\d+): )?`)
	// duplicateKey matches the problem of a key that an object has twice.
	duplicateKey = regexp.MustCompile(`\bkey (".*") already set in map`)
	// tabIndent matches a tab in the indentation.
	tabIndent = regexp.MustCompile(`(?m)^ *\t`)
)

// explainYAMLError returns the line of a YAML error, the YAML library's text, and the usual cause.
func explainYAMLError(err error, document []byte) Problem {
	text := err.Error()
	prefix := linePrefix.FindStringSubmatch(text)
	text, _, _ = strings.Cut(strings.TrimPrefix(text, prefix[0]), "\n")
	line, _ := strconv.Atoi(prefix[1])
	key := duplicateKey.FindStringSubmatch(text)
	switch template := findBareTemplate(text, document); {
	case key != nil:
		text = fmt.Sprintf("the field %s is there twice: remove one", key[1])
	case template != "":
		text = fmt.Sprintf("no valid YAML: put templates in quotes, \"%s\"", template)
	case strings.Contains(text, "cannot start any token") && tabIndent.Match(document):
		text = "no valid YAML: indent with blanks, not with tabs"
	case strings.Contains(text, "mapping values are not allowed"):
		text = `no valid YAML: put a value that has ": " in it in quotes`
	default:
		text = "no valid YAML: " + text
	}
	return Problem{Line: line, Text: text}
}

// findBareTemplate finds a template without quotes, which YAML takes for an object, if that may
// have caused the problem.
func findBareTemplate(problem string, document []byte) string {
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
	// json is a json.Number or a bool. It keeps the fraction of 9.0, which becomes the integer 9
	// on its way to JSON, so that a version written like that is reported.
	json any
	// written is the scalar as the document has it: 0x10 or yes, which are 16 and true in JSON.
	// It is empty if that is not known.
	written string
}

// MarshalJSON implements json.Marshaler.
func (s scalar) MarshalJSON() ([]byte, error) { return json.Marshal(s.json) }

// asWritten replaces all numbers and bools of a value by scalars, with what the YAML node has. A
// part that no node has, such as one that comes from a merge key, has an empty node.
func asWritten(value any, node *yaml.Node) any {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	switch v := value.(type) {
	case map[string]any:
		nodes := map[string]*yaml.Node{}
		for i := 0; i+1 < len(node.Content); i += 2 {
			nodes[node.Content[i].Value] = node.Content[i+1]
		}
		for key, inner := range v {
			v[key] = asWritten(inner, cmp.Or(nodes[key], &yaml.Node{}))
		}
	case []any:
		for i, inner := range v {
			item := &yaml.Node{}
			if i < len(node.Content) {
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

// asPlainText returns a string as it is, a number as it is in JSON, and "" for other values.
func asPlainText(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case scalar:
		return asPlainText(v.json)
	}
	return ""
}
