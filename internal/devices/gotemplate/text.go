package gotemplate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/template/parse"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// NoValue is what Go templates print for a field that the data lack.
const NoValue = "<no value>"

// Text is a field of a document that may be a template. Parse or Check makes it ready.
type Text struct {
	Path   *field.Path
	Source string

	// program is nil for literal text.
	program *program
}

var checks []func(source string, sample map[string]any) (problem string)

// RegisterCheck has Check ask what else is wrong with a template that compiles. Call it in an init function.
func RegisterCheck(check func(source string, sample map[string]any) (problem string)) {
	checks = append(checks, check)
}

// Check compiles the text as Parse does. It also refuses a template that costs too much, or in which
// an extension finds a problem.
func (t *Text) Check(sample map[string]any) field.ErrorList {
	if errs := t.Parse(); len(errs) > 0 || t.program == nil {
		return errs
	}
	data := maps.Clone(sample)
	for name, value := range sample {
		if _, isNumber := value.(int); isNumber {
			continue
		}
		var err error
		if data[name], err = EncodeValue(value); err != nil {
			return field.ErrorList{field.InternalError(t.Path, err)}
		}
	}
	// Other data may not cause the other errors, such as that of a label which the sample lacks.
	if _, err := (&Renderer{Texts: 1}).Render(t, data); errors.Is(err, errTooMuch) {
		return t.Refuse(errTooMuch.Error())
	}
	for _, check := range checks {
		if problem := check(t.Source, sample); problem != "" {
			return t.Refuse(problem)
		}
	}
	return nil
}

// Refuse returns the error of the text for a reason.
func (t *Text) Refuse(why string) field.ErrorList {
	return field.ErrorList{field.Invalid(t.Path, t.Source, why)}
}

// handsOnAll matches a template that passes on all of its data, or a part of them within range
// and with.
var handsOnAll = regexp.MustCompile(`(^|[\s({|=])[.$]($|[\s)}|])`)

// Reads reports whether the text may read a field of its data. In doubt it says yes: that costs
// time, and no write.
func (t *Text) Reads(name string) bool {
	return strings.Contains(t.Source, name) || handsOnAll.MatchString(t.Source)
}

// FillActions returns the template with the filling in place of each action. It is false for a
// template that has more than text and actions which print something.
func (t *Text) FillActions(filling string) (string, bool) {
	var text strings.Builder
	for _, node := range t.program.tree.Root.Nodes {
		switch n := node.(type) {
		case *parse.TextNode:
			text.Write(n.Text)
		case *parse.ActionNode:
			if len(n.Pipe.Decl) == 0 {
				text.WriteString(filling)
			}
		default:
			return "", false
		}
	}
	return text.String(), true
}

// Replacer returns the string that replaces one at a path of a document.
type Replacer func(path *field.Path, value string) string

// ReplaceTemplates replaces strings that are templates, and keeps all others.
func ReplaceTemplates(replace func(*Text) string) Replacer {
	return func(path *field.Path, value string) string {
		if !v1alpha1.IsTemplate(value) {
			return value
		}
		return replace(&Text{Path: path, Source: value})
	}
}

// InList copies a list and replaces its strings.
func (r Replacer) InList(values []string, path *field.Path) []string {
	list := slices.Clone(values)
	for i := range list {
		list[i] = r(path.Index(i), list[i])
	}
	return list
}

// InValue copies decoded JSON and replaces its strings, in an order that is always the same.
func (r Replacer) InValue(value any, path *field.Path) any {
	switch v := value.(type) {
	case string:
		return r(path, v)
	case []any:
		list := slices.Clone(v)
		for i := range v {
			list[i] = r.InValue(v[i], path.Index(i))
		}
		return list
	case map[string]any:
		object := maps.Clone(v)
		for _, key := range slices.Sorted(maps.Keys(v)) {
			object[key] = r.InValue(v[key], path.Key(key))
		}
		return object
	}
	return value
}

// RenderAll renders the compiled templates of one document, which see the same data. The function
// returns the rendered texts in their order, to a walk through the document that finds them again.
func RenderAll(texts []*Text, data map[string]any) (next func(*Text) string, errs []error) {
	if len(texts) == 0 { // a claim without templates is prepared often
		return nil, nil
	}
	renderer := Renderer{Texts: len(texts)}
	rendered := make([]string, len(texts))
	for i, text := range texts {
		var err error
		if rendered[i], err = renderer.Render(text, data); err != nil {
			errs = append(errs, err)
		}
		if strings.Contains(rendered[i], NoValue) {
			errs = append(errs, field.Invalid(text.Path, text.Source, "reads a field that is not there; give a fallback with or"))
		}
	}
	return func(*Text) string {
		first := rendered[0]
		rendered = rendered[1:]
		return first
	}, errs
}

// ListSome lists the first of many names, for errors.
func ListSome(names []string) string {
	const most = 3
	switch {
	case len(names) == 0:
		return "none"
	case len(names) > most:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// EncodeValue converts a value to what its JSON says, with each number as it is written.
func EncodeValue(value any) (any, error) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode for templates: %w", err)
	}
	var decoded any
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.UseNumber()
	if err := decoder.Decode(&decoded); err != nil {
		return nil, fmt.Errorf("decode for templates: %w", err)
	}
	return decoded, nil
}
