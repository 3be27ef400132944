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

// IsEmpty reports whether the document has nothing but comments.
func (t Text) IsEmpty() bool { return isEmpty(t.Data) }

func isEmpty(text []byte) bool { return commentedLines(text) == len(text) }

// byteOrderMark begins texts that were written on Windows. Files put together by
// cat have it in the middle too.
var byteOrderMark = []byte("\uFEFF")

// Split splits a text into its documents: at lines that begin with "---", and
// between JSON values.
func Split(text []byte) []Text {
	var all []Text
	current, number := Text{Line: 1}, 0
	for line := range bytes.Lines(asUTF8(text)) {
		number++
		line = bytes.TrimPrefix(line, byteOrderMark)
		isSeparator, isBegin := parseMarker(line)
		if isSeparator || isBegin {
			all, current = appendValues(all, current), Text{Line: number}
		}
		if isSeparator {
			current.Line++
			continue
		}
		current.Data = append(current.Data, line...)
	}
	return appendValues(all, current)
}

// parseMarker reports whether a line is what kubectl takes for the end of a document, or
// the first line of a document as YAML also has it, as in "--- {kind: Node}".
func parseMarker(line []byte) (isSeparator, isBegin bool) {
	rest, ok := bytes.CutPrefix(line, []byte("---"))
	trimmed := bytes.TrimSpace(rest)
	isSeparator = ok && (len(trimmed) == 0 || trimmed[0] == '#')
	return isSeparator, ok && !isSeparator && (rest[0] == ' ' || rest[0] == '\t')
}

// appendValues appends a document, or each of the JSON values in it. What follows
// the last valid value is a document of its own, so that Parse refuses it.
func appendValues(all []Text, document Text) []Text {
	if len(document.Data) == 0 {
		return all
	}
	for {
		value := document.startingAt(commentedLines(document.Data))
		if len(value.Data) == 0 || value.Data[0] != '{' && value.Data[0] != '[' {
			return append(all, document)
		}
		decoder := json.NewDecoder(bytes.NewReader(value.Data))
		var raw json.RawMessage
		if decoder.Decode(&raw) != nil || isEmpty(value.Data[decoder.InputOffset():]) {
			return append(all, document)
		}
		end := int(decoder.InputOffset())
		all = append(all, Text{Line: value.Line, Data: value.Data[:end]})
		document = value.startingAt(end + len(value.Data[end:]) - len(bytes.TrimLeft(value.Data[end:], " \t\r\n")))
	}
}

// startingAt is the document without what is before the offset.
func (t Text) startingAt(offset int) Text {
	return Text{Line: t.Line + bytes.Count(t.Data[:offset], []byte("\n")), Data: t.Data[offset:]}
}

// commentedLines is the length of the comments and blanks that a document begins with.
func commentedLines(text []byte) (length int) {
	for line := range bytes.Lines(text) {
		if trimmed := bytes.TrimLeft(line, " \t\r\n"); len(trimmed) > 0 && trimmed[0] != '#' {
			return length + len(line) - len(trimmed)
		}
		length += len(line)
	}
	return length
}

// asUTF8 converts a text in UTF-16, which PowerShell writes.
func asUTF8(text []byte) []byte {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(text, []byte{0xFF, 0xFE}):
		order = binary.LittleEndian
	case bytes.HasPrefix(text, []byte{0xFE, 0xFF}):
		order = binary.BigEndian
	default:
		return text
	}
	units := make([]uint16, len(text)/2)
	for i := range units {
		units[i] = order.Uint16(text[2*i:])
	}
	return []byte(string(utf16.Decode(units)))
}

var (
	// afterEnd finds what follows a line of three dots, the end of a document.
	afterEnd = regexp.MustCompile(`(?m)^\.\.\.\s*\n(\s*(#.*)?\n)*\s*[^#\s]`)
	// blockMapping finds the first line of an object in block style, which only a line
	// of dots or dashes ends.
	blockMapping = regexp.MustCompile(`^(\s*(#.*)?\n)*[\w.-]+:\s`)
)

// Trailing is the problem of a text with more than one document, or nil. The YAML
// library would drop the others without a word.
func Trailing(text []byte) *Problem {
	const fix = "begin a document with the line ---"
	if afterEnd.Match(text) {
		return &Problem{Text: "there is text after the end of the document, the line ...: " + fix}
	}
	if blockMapping.Match(text) || json.Valid(text) {
		return nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var first, second yaml.Node
	if decoder.Decode(&first) != nil {
		return nil // the whole text is no YAML
	}
	if err := decoder.Decode(&second); errors.Is(err, io.EOF) {
		return nil
	}
	return &Problem{Text: "there is text after the end of the document: " + fix}
}
