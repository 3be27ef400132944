// Package strict decodes YAML and JSON documents into Go types. It decodes what
// fits, and names all that does not: the path of each field, its value, what would
// be valid, and what was probably meant.
package strict

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	sigsjson "sigs.k8s.io/json"
	sigsyaml "sigs.k8s.io/yaml"
)

// Split splits a text into its documents, at lines that begin with "---".
func Split(text []byte) ([][]byte, error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	var documents [][]byte
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read document %d: %w", len(documents)+1, err)
		}
		documents = append(documents, document)
	}
}

// Document is a document that has been parsed.
type Document struct {
	// Value is what JSON has of the document: nil, a string, a list, an object, or a
	// number or bool of a type of its own.
	Value any
}

// afterEnd finds what follows a line of three dots, the end of a document. The
// YAML library would drop it without a word.
var afterEnd = regexp.MustCompile(`(?m)^\.\.\.\s*\n(\s*(#.*)?\n)*\s*[^#\s]`)

// Parse parses a document. It returns a problem where the document is no valid
// YAML, and the document as far as it can be told all the same.
func Parse(text []byte) (Document, Problems) {
	if afterEnd.Match(text) {
		return Document{}, Problems{{Text: "there is text after the end of the document, the line ...: begin a document with the line ---"}}
	}
	var problems Problems
	data, err := sigsyaml.YAMLToJSONStrict(text)
	if err != nil {
		problems = Problems{explain(err, text)}
		if data, _ = sigsyaml.YAMLToJSON(text); data == nil {
			return Document{}, problems
		}
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

// Decode decodes what fits, and returns what does not: unknown fields, those in
// the wrong case, and values of the wrong form. A type that implements
// encoding.TextUnmarshaler gets numbers and bools as they are written. Path is that
// of the document, or nil.
func (d Document) Decode(into any, path *field.Path) Problems {
	var f fitter
	kept, err := json.Marshal(f.fit(d.Value, reflect.TypeOf(into).Elem(), path))
	if err == nil {
		err = sigsjson.UnmarshalCaseSensitivePreserveInts(kept, into)
	}
	if err != nil && len(f.problems) == 0 {
		return Problems{{Path: pathOf(path), Text: err.Error()}}
	}
	return f.problems
}
