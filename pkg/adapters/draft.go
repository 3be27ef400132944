package adapters

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
)

// adapter collects what a document is turned into.
type adapter struct {
	problems problems
	drafts   []*draft
	changes  []string
	// renamed maps the paths of attributes as they are published to those in the
	// document.
	renamed map[string]string
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
		if !d.incomplete {
			d.check(&a.problems)
		}
		adapted.Templates = append(adapted.Templates, d.template)
	}
	for i, p := range a.problems {
		a.problems[i].path = cmp.Or(a.renamed[p.path], p.path)
	}
	if err := a.problems.err(); err != nil {
		return nil, err
	}
	slices.SortFunc(adapted.Templates, func(a, b v1alpha1.ResourcePoolTemplate) int { return cmp.Compare(a.Name, b.Name) })
	return adapted, nil
}

// draft is a template that is not validated yet.
type draft struct {
	template v1alpha1.ResourcePoolTemplate
	// origins maps fields of the template to those of the document that they are
	// from.
	origins map[string]string
	// incomplete says that a part could not be read, so that further problems may
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

// devicePath finds the paths of devices in the text of an error.
var devicePath = regexp.MustCompile(`\bspec\.devices\[\d+\][\w.\[\]]*`)

// check validates the template as the configuration does, and names fields of the
// document.
func (d *draft) check(p *problems) {
	d.template.SetDefaults()
	_, errs := devices.Compile(&d.template)
	for _, err := range errs {
		text := strings.ReplaceAll(err.ErrorBody(), ", or a template", "") // which a literal cannot be
		p.add(d.originOf(err.Field), devicePath.ReplaceAllStringFunc(text, d.originOf))
	}
}

// originOf is the path of a field in the document.
func (d *draft) originOf(path string) string {
	for end := len(path); end > 0; end = strings.LastIndexAny(path[:end], ".[") {
		if origin, is := d.origins[path[:end]]; is {
			return origin + path[end:]
		}
	}
	return path
}
