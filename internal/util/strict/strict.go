package strict

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"
)

// Text is one document of a text, not parsed yet.
type Text struct {
	// Line is the number of the line of the whole text in which Data begins.
	Line int
	Data []byte
}

// leadingComments matches the blanks and comments that a text begins with, which may be none.
var leadingComments = regexp.MustCompile(`^(?:[ \t\r\n]|#[^\n]*)*`)

// IsEmpty reports whether the document has only comments.
func (t Text) IsEmpty() bool { return len(leadingComments.Find(t.Data)) == len(t.Data) }

// byteOrderMark begins texts that were written on Windows. It also stands in the middle of files
// that were put together by cat.
var byteOrderMark = []byte("\uFEFF")

// Split splits a text into its documents: at lines that begin with "---", and between JSON
// values. A text in UTF-16, which PowerShell writes, becomes UTF-8.
func Split(text []byte) []Text {
	for mark, order := range map[string]binary.ByteOrder{"\xFF\xFE": binary.LittleEndian, "\xFE\xFF": binary.BigEndian} {
		if bytes.HasPrefix(text, []byte(mark)) {
			units := make([]uint16, len(text)/2)
			for i := range units {
				units[i] = order.Uint16(text[2*i:])
			}
			text = []byte(string(utf16.Decode(units)))
			break
		}
	}
	var all []Text
	current, number := Text{Line: 1}, 0
	for line := range bytes.Lines(text) {
		number++
		line = bytes.TrimPrefix(line, byteOrderMark)
		rest, hasDashes := bytes.CutPrefix(line, []byte("---"))
		trimmed := bytes.TrimSpace(rest)
		switch {
		case hasDashes && (len(trimmed) == 0 || trimmed[0] == '#'): // kubectl ends a document here
			all, current = appendValues(all, current), Text{Line: number + 1}
			continue
		case hasDashes && (rest[0] == ' ' || rest[0] == '\t'): // a document begins in this line: --- {kind: Node}
			all, current = appendValues(all, current), Text{Line: number}
		}
		current.Data = append(current.Data, line...)
	}
	return appendValues(all, current)
}

// appendValues appends a document, or each of the JSON values in it. What follows
// the last valid value becomes a document of its own, so that Parse refuses it.
func appendValues(all []Text, document Text) []Text {
	if len(document.Data) == 0 {
		return all
	}
	for {
		comments := leadingComments.Find(document.Data)
		value := document.Data[len(comments):]
		if len(value) == 0 || value[0] != '{' && value[0] != '[' {
			return append(all, document)
		}
		decoder := json.NewDecoder(bytes.NewReader(value))
		var raw json.RawMessage
		if decoder.Decode(&raw) != nil || (Text{Data: value[decoder.InputOffset():]}).IsEmpty() {
			return append(all, document)
		}
		line, end := document.Line+bytes.Count(comments, []byte("\n")), decoder.InputOffset()
		all = append(all, Text{Line: line, Data: value[:end]})
		rest := bytes.TrimLeft(value[end:], " \t\r\n")
		document = Text{Line: line + bytes.Count(value[:len(value)-len(rest)], []byte("\n")), Data: rest}
	}
}

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
// as much of the document as can be read. It refuses texts that are not UTF-8 or have NUL bytes: the
// YAML library would silently read only a part of some of them.
func Parse(text []byte) (Document, Problems) {
	if bytes.HasPrefix(text, gzipMagic) {
		return Document{}, Problems{{Line: 1, Text: "the text is compressed by gzip: decompress it"}}
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
			return Document{}, Problems{{Line: line, Text: fmt.Sprintf("the byte 0x%02x at offset %d is %s", text[at], at, problem)}}
		}
		at += size
	}
	root, second := Node(text)
	if second != nil {
		return Document{}, Problems{*second}
	}
	var problems Problems
	data, err := sigsyaml.YAMLToJSONStrict(text)
	switch {
	case err == nil:
	case json.Valid(text) && !duplicateKey.MatchString(err.Error()):
		data = text // YAML lacks the escapes of JSON for characters beyond 16 bits
	default:
		problems = Problems{explainYAMLError(err, text)}
		if data, err = sigsyaml.YAMLToJSON(text); err != nil {
			return Document{}, problems
		}
	}
	var value any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return Document{}, Problems{{Text: "no valid JSON: " + err.Error()}}
	}
	root.Content = append(root.Content, &yaml.Node{}) // for a text that is no YAML
	return Document{Value: asWritten(value, root.Content[0])}, problems
}

// gzipMagic begins whatever gzip has compressed.
var gzipMagic = []byte("\x1f\x8b")

// afterEnd matches text after a line of three dots, which ends a document.
var afterEnd = regexp.MustCompile(`(?m)^\.\.\.\s*\n(\s*(#.*)?\n)*\s*[^#\s]`)

// Node returns the YAML node of the only document of a text, which is empty if the text is no YAML.
// It returns a problem if there is a second document, which the YAML library would drop silently.
func Node(text []byte) (first yaml.Node, problem *Problem) {
	const fix = "begin a document with the line ---"
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	err := decoder.Decode(&first)
	var second yaml.Node
	switch {
	case afterEnd.Match(text):
		return first, &Problem{Text: "there is text after the end of the document, the line ...: " + fix}
	case err == nil && !errors.Is(decoder.Decode(&second), io.EOF):
		return first, &Problem{Text: "there is text after the end of the document: " + fix}
	}
	return first, nil
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
