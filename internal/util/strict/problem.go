package strict

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Problem is what is wrong with a document.
type Problem struct {
	// Path is the path of the field. It is empty for the whole document.
	Path string
	// Text says what is wrong, with the value and what would be valid.
	Text string
	// Line is the number of the line in the document that is no YAML, or 0.
	Line int
	// Unknown reports whether the type has no such field.
	Unknown bool
	// meant is the path of the field that the writer probably meant, or empty.
	meant string
}

// String returns the problem as errors show it.
func (p Problem) String() string {
	switch {
	case p.Line > 0:
		return fmt.Sprintf("line %d of the document: %s", p.Line, p.Text)
	case p.Path == "":
		return p.Text
	}
	return p.Path + ": " + p.Text
}

// Paths returns the path of the field that could not be decoded, and of the one that was meant.
func (p Problem) Paths() []string {
	if p.meant == "" {
		return []string{p.Path}
	}
	return []string{p.Path, p.meant}
}

// Within reports whether a path is the path of a field or of a part of it.
func Within(field, path string) bool {
	rest, has := strings.CutPrefix(path, field)
	return has && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// Problems is everything that is wrong with a document.
type Problems []Problem

// Of converts the errors of validation into problems.
func Of(errs field.ErrorList) Problems {
	problems := make(Problems, len(errs))
	for i, err := range errs {
		problems[i] = Problem{Path: err.Field, Text: err.ErrorBody()}
	}
	return problems
}

// Hides reports whether any problem alone may have caused an error of a field: a field that could not
// be decoded is this one, a part of it, or contains it.
func (p Problems) Hides(path string) bool {
	for _, one := range p {
		for _, own := range one.Paths() {
			if own == "" || Within(own, path) || Within(path, own) {
				return true
			}
		}
	}
	return false
}

// Error returns one line, or one line per problem if there are several.
func (p Problems) Error() string {
	if len(p) == 1 {
		return p[0].String()
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%d problems:", len(p))
	for i := range p {
		fmt.Fprintf(&text, "\n  %s", p[i])
	}
	return text.String()
}

// pathText returns the text of a path. It is empty for the document itself.
func pathText(path *field.Path) string {
	if path == nil {
		return ""
	}
	return path.String()
}

// maxShown is how many bytes of a value an error shows.
const maxShown = 100

// Shown returns a value as JSON, shortened for an error.
func Shown(value any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "?"
	}
	trimmed := strings.TrimSpace(text.String())
	if len(trimmed) > maxShown {
		return strings.ToValidUTF8(trimmed[:maxShown], "") + "..."
	}
	return trimmed
}
