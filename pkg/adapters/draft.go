package adapters

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/defaults"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
	"github.com/kwok-dra/kwok-dra/pkg/strict"
)

// adapter collects what a document is turned into.
type adapter struct {
	// misfits are what could not be decoded, and problems all else.
	misfits, problems strict.Problems
	drafts            []*draft
	changes           []string
	// names maps the names of parts to their paths.
	names map[string]*field.Path
	// renamed maps the paths of attributes as they are published to those in the
	// document.
	renamed map[string]string
}

// parse parses a text of one document.
func parse(text string) (strict.Document, strict.Problems) {
	texts, err := strict.Split([]byte(text))
	if err != nil {
		return strict.Document{}, strict.Problems{{Text: err.Error()}}
	}
	var found strict.Document
	for _, text := range texts {
		document, problems := strict.Parse(text)
		switch {
		case len(problems) > 0:
			return document, problems
		case document.Value != nil && found.Value != nil:
			return document, strict.Problems{{Text: "there is a second document after a line ---: put all into one"}}
		case document.Value != nil:
			found = document
		}
	}
	return found, nil
}

// decodeSpec decodes the spec of an object.
func (a *adapter) decodeSpec(source *unstructured.Unstructured, into any) error {
	text, err := json.Marshal(source.Object["spec"])
	if err != nil {
		return fmt.Errorf("encode spec: %w", err)
	}
	document, problems := strict.Parse(text)
	a.misfits = slices.Concat(problems, document.Decode(into, field.NewPath("spec")))
	return nil
}

// refuse notes what is wrong with fields. Of a field only the first problem is
// kept: others mostly follow from it.
func (a *adapter) refuse(errs ...*field.Error) {
	for _, p := range strict.Of(errs) {
		p.Path = cmp.Or(a.renamed[p.Path], p.Path)
		if !a.misfits.Hides(p.Path) && !a.problems.Hides(p.Path) {
			a.problems = append(a.problems, p)
		}
	}
}

// forbid refuses fields that are given.
func (a *adapter) forbid(given map[string]bool, path *field.Path, why string) {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if given[name] {
			a.refuse(field.Forbidden(path.Child(name), why))
		}
	}
}

// takeName refuses a name that another part has.
func (a *adapter) takeName(name string, path *field.Path) bool {
	if other, ok := a.names[name]; ok {
		duplicate := field.Duplicate(path, name)
		duplicate.Detail = fmt.Sprintf("%s is that already; rename one", other)
		a.refuse(duplicate)
		return false
	}
	if a.names == nil {
		a.names = map[string]*field.Path{}
	}
	a.names[name] = path
	return true
}

// change notes what is published in another form than it was written.
func (a *adapter) change(format string, args ...any) {
	if sentence := fmt.Sprintf(format, args...); !slices.Contains(a.changes, sentence) {
		a.changes = append(a.changes, sentence)
	}
}

// finish validates the drafts, and makes templates of them.
func (a *adapter) finish() (*Adapted, error) {
	adapted := &Adapted{Changes: a.changes}
	for _, d := range a.drafts {
		a.check(d)
		adapted.Templates = append(adapted.Templates, d.template)
	}
	if problems := slices.Concat(a.misfits, a.problems); len(problems) > 0 {
		for i := range problems { // texts in foreign documents are none
			problems[i].Text = strings.ReplaceAll(problems[i].Text, ", or a template", "")
		}
		return nil, problems
	}
	slices.SortFunc(adapted.Templates, func(a, b v1alpha1.ResourcePoolTemplate) int { return cmp.Compare(a.Name, b.Name) })
	return adapted, nil
}

// devicePath finds the paths of devices in the text of an error.
var devicePath = regexp.MustCompile(`\bspec\.devices\[\d+\][\w.\[\]]*`)

// check validates a draft as the configuration does, and names fields of the
// document. Of an incomplete one only what stands for itself is told.
func (a *adapter) check(d *draft) {
	defaults.SetResourcePoolTemplate(&d.template)
	_, errs := devices.Compile(&d.template)
	for _, err := range errs {
		if d.incomplete && !devices.StandsAlone(err.Field) {
			continue
		}
		err.Field, err.Detail = d.originOf(err.Field), devicePath.ReplaceAllStringFunc(err.Detail, d.originOf)
		a.refuse(err)
	}
}

// draft is a template that is not validated yet.
type draft struct {
	template v1alpha1.ResourcePoolTemplate
	// origins maps fields of the template to those of the document that they are
	// from.
	origins map[string]string
	// incomplete says that a part could not be decoded, so that further problems may
	// only follow from that.
	incomplete bool
}

func newDraft(name, driver string, priority int32) *draft {
	return &draft{
		template: v1alpha1.ResourcePoolTemplate{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.ResourcePoolTemplateKind},
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       v1alpha1.ResourcePoolTemplateSpec{Driver: driver, Priority: priority},
		},
		origins: map[string]string{},
	}
}

// from notes which field of the document a field of the template is from.
func (d *draft) from(field, origin *field.Path) {
	d.origins[field.String()] = origin.String()
}

// add adds a device.
func (d *draft) add(device v1alpha1.DeviceTemplate, origin *field.Path) {
	d.from(field.NewPath("spec", "devices").Index(len(d.template.Spec.Devices)), origin)
	d.template.Spec.Devices = append(d.template.Spec.Devices, device)
}

// originOf is the path of a field in the document.
func (d *draft) originOf(path string) string {
	for end := len(path); end > 0; end = strings.LastIndexAny(path[:end], ".[") {
		if origin, ok := d.origins[path[:end]]; ok {
			return origin + path[end:]
		}
	}
	return path
}
