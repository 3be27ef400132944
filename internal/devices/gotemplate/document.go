package gotemplate

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

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

// Batch renders the compiled templates of one document, in their order.
type Batch struct {
	// Errs are the errors of those rendered so far.
	Errs []error

	renderer Renderer
	texts    []*Text
	data     map[string]any
}

// NewBatch makes a Batch of texts that see the same data.
func NewBatch(texts []*Text, data map[string]any) *Batch {
	return &Batch{renderer: Renderer{Texts: len(texts)}, texts: texts, data: data}
}

// RenderNext renders the next text of the batch, which a walk through the document has found again.
func (b *Batch) RenderNext(found *Text) string {
	text, err := b.renderer.Render(b.texts[0], b.data)
	b.texts = b.texts[1:]
	if err != nil {
		b.Errs = append(b.Errs, err)
	}
	if strings.Contains(text, NoValue) {
		b.Errs = append(b.Errs, field.Invalid(found.Path, found.Source, "reads a field that is not there; give a fallback with or"))
	}
	return text
}
