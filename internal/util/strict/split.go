package strict

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"unicode/utf16"

	"go.yaml.in/yaml/v3"
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

// afterEnd matches text after a line of three dots, which ends a document.
var afterEnd = regexp.MustCompile(`(?m)^\.\.\.\s*\n(\s*(#.*)?\n)*\s*[^#\s]`)

// Trailing returns the problem of a text with more than one document, or nil. The YAML library
// would drop the others silently.
func Trailing(text []byte) *Problem {
	_, problem := firstNode(text)
	return problem
}

// firstNode returns the node of the only document of a text, which is empty if the text is no YAML,
// or the problem of a text with more than one.
func firstNode(text []byte) (first yaml.Node, problem *Problem) {
	const fix = "begin a document with the line ---"
	if afterEnd.Match(text) {
		return first, &Problem{Text: "there is text after the end of the document, the line ...: " + fix}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var second yaml.Node
	if decoder.Decode(&first) == nil && !errors.Is(decoder.Decode(&second), io.EOF) {
		return first, &Problem{Text: "there is text after the end of the document: " + fix}
	}
	return first, nil
}
