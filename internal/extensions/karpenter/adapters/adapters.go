package adapters

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/util/strict"
	"github.com/kwok-dra/kwok-dra/internal/util/suggest"
	"github.com/kwok-dra/kwok-dra/pkg/api/defaults"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// The priorities of templates by their format. For a node and a driver, a NodeOverlay comes first,
// then templates and DRAConfigs, then the ConfigMap.
const (
	// nodeOverlayPriority is the priority without the weight, which is added and at most 10,000.
	nodeOverlayPriority int32 = 1_000_000
	// templatePriority is the priority of a DRAConfig, and the default of a template.
	templatePriority  int32 = 0
	configMapPriority int32 = -1_000_000
)

// exampleDriver says in errors what a driver must be.
const exampleDriver = "the name of the DRA driver, for example gpu.example.com"

// adapter collects the templates of a document, and its problems.
type adapter struct {
	// misfits could not be decoded; problems are all others.
	misfits, problems strict.Problems
	drafts            []*draft
	changes           []string
	// names maps the names of parts to their paths.
	names map[string]*field.Path
	// renamed maps the paths of attributes as published to their paths in the document.
	renamed map[string]string
}

func newAdapter() adapter {
	return adapter{names: map[string]*field.Path{}, renamed: map[string]string{}}
}

// parseDocument parses a text that must have at most one document.
func parseDocument(text string) (strict.Document, strict.Problems) {
	var found strict.Document
	for _, one := range strict.Split([]byte(text)) {
		document, problems := strict.Parse(one.Data)
		if len(problems) == 0 && document.Value != nil && found.Value != nil {
			problems = strict.Problems{{Text: "there is a second document after a line ---: put all into one"}}
		}
		if len(problems) > 0 {
			return document, problems
		}
		if document.Value != nil {
			found = document
		}
	}
	return found, nil
}

// decodeSpec decodes the spec of an object.
func (a *adapter) decodeSpec(source *unstructured.Unstructured, into any) {
	text, _ := json.Marshal(source.Object["spec"]) // it has been JSON before
	document, problems := strict.Parse(text)
	a.misfits = slices.Concat(problems, document.Decode(into, field.NewPath("spec")))
}

// addProblems adds problems of fields. It keeps only the first problem of a field, since the others
// mostly follow from it.
func (a *adapter) addProblems(errs ...*field.Error) {
	for _, p := range strict.Of(errs) {
		p.Path = cmp.Or(a.renamed[p.Path], p.Path)
		if !a.misfits.Hides(p.Path) && !a.problems.Hides(p.Path) {
			a.problems = append(a.problems, p)
		}
	}
}

// forbidFields refuses the fields that are given.
func (a *adapter) forbidFields(given map[string]bool, path *field.Path, why string) {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if given[name] {
			a.addProblems(field.Forbidden(path.Child(name), why))
		}
	}
}

// requireField refuses a missing field, and reports whether it is given.
func (a *adapter) requireField(given bool, path *field.Path, what string) bool {
	if !given {
		a.addProblems(field.Required(path, what))
	}
	return given
}

// takeName refuses a name that another part has, and reports whether it is free.
func (a *adapter) takeName(name string, path *field.Path) bool {
	if other, ok := a.names[name]; ok {
		duplicate := field.Duplicate(path, name)
		duplicate.Detail = fmt.Sprintf("%s is that already; rename one", other)
		a.addProblems(duplicate)
		return false
	}
	a.names[name] = path
	return true
}

// noteChange notes a value that is published in another form than it was written.
func (a *adapter) noteChange(format string, args ...any) {
	if sentence := fmt.Sprintf(format, args...); !slices.Contains(a.changes, sentence) {
		a.changes = append(a.changes, sentence)
	}
}

// validateDrafts validates the drafts, and returns their templates or all problems.
func (a *adapter) validateDrafts() (*config.Adapted, error) {
	adapted := &config.Adapted{Changes: a.changes}
	for _, d := range a.drafts {
		a.validateDraft(d)
		adapted.Templates = append(adapted.Templates, d.template)
	}
	if problems := slices.Concat(a.misfits, a.problems); len(problems) > 0 {
		for i := range problems { // texts in foreign documents are not templates
			problems[i].Text = strings.ReplaceAll(problems[i].Text, ", or a template", "")
		}
		return nil, problems
	}
	slices.SortFunc(adapted.Templates, func(a, b v1alpha1.ResourcePoolTemplate) int { return cmp.Compare(a.Name, b.Name) })
	return adapted, nil
}

// devicePath matches the paths of devices in the text of an error.
var devicePath = regexp.MustCompile(`\bspec\.devices\[\d+\][\w.\[\]]*`)

// validateDraft validates a draft as the configuration does, and names the fields of the document.
// For an incomplete draft, it reports only problems that cannot follow from the missing part.
func (a *adapter) validateDraft(d *draft) {
	defaults.SetResourcePoolTemplate(&d.template)
	_, errs := devices.Compile(&d.template)
	for _, err := range errs {
		if d.incomplete && !devices.StandsAlone(err.Field) {
			continue
		}
		err.Field, err.Detail = d.originalPath(err.Field), devicePath.ReplaceAllStringFunc(err.Detail, d.originalPath)
		a.addProblems(err)
	}
}

// draft is a template that has not been validated yet.
type draft struct {
	template v1alpha1.ResourcePoolTemplate
	// origins maps paths of the template to paths of the document.
	origins map[string]string
	// incomplete reports whether a part could not be decoded, which may cause other problems.
	incomplete bool
}

// templateName names the template of a part of an object. The name is unique: the name of the object
// ends at the first ".", or else the name ends in a hash.
func templateName(object, part string) string {
	full := object + "." + part
	name := suggest.Subdomain(full)
	if name == full && !strings.Contains(object, ".") && len(name) <= validation.DNS1123SubdomainMaxLength {
		return name
	}
	sum := sha256.Sum256([]byte(full))
	hash := "-" + hex.EncodeToString(sum[:])[:10]
	return strings.TrimRight(name[:min(len(name), validation.DNS1123SubdomainMaxLength-len(hash))], "-.") + hash
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

// setOrigin records the field of the document that a field of the template comes from.
func (d *draft) setOrigin(field, origin *field.Path) {
	d.origins[field.String()] = origin.String()
}

// addDevice adds a device.
func (d *draft) addDevice(device v1alpha1.DeviceTemplate, origin *field.Path) {
	d.setOrigin(field.NewPath("spec", "devices").Index(len(d.template.Spec.Devices)), origin)
	d.template.Spec.Devices = append(d.template.Spec.Devices, device)
}

// originalPath returns the path of a field in the document.
func (d *draft) originalPath(path string) string {
	for end := len(path); end > 0; end = strings.LastIndexAny(path[:end], ".[") {
		if origin, ok := d.origins[path[:end]]; ok {
			return origin + path[end:]
		}
	}
	return path
}
