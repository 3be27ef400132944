package devices

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/kwok/pkg/utils/gotpl"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
)

// separator ends each rendered value. YAML has no way to write it, so no value
// can hold it by accident.
const separator = "\x00"

// noValue is what Go templates print for a field that is not there.
const noValue = "<no value>"

// text renders all values of a template in one go. kwok's renderer encodes and
// decodes the whole object on every call, which for a Node costs more than all
// the rest; so the values become named parts of a single Go template.
type text struct {
	renderer *renderer
	// source is empty where only the pool's name is needed.
	source   string
	poolName string
	count    int
}

// newText parses the pool's name, the labels and the places of all groups.
func newText(poolName place, labels []place, groups []group) (*text, field.ErrorList) {
	t := &text{renderer: newRenderer(), poolName: poolName.value}
	known := poolName.value == v1alpha1.DefaultPoolName || !v1alpha1.IsTemplate(poolName.value)
	if known && !rendersAny(labels, groups) {
		return t, nil
	}
	places := append([]place{poolName}, templatesOf(labels)...)
	t.count = len(places)
	var body strings.Builder
	for _, p := range places {
		body.WriteString(call(p.path))
	}
	c := &checker{renderer: newRenderer(), checked: map[string]bool{}}
	c.places(places, sampleNode)
	for i := range groups {
		group := &groups[i]
		if len(group.places) == 0 {
			continue
		}
		c.group(group)
		var each strings.Builder
		for _, p := range group.places {
			each.WriteString(call(p.path))
		}
		body.WriteString(group.context(each.String()))
		t.count += len(group.devices) * len(group.places)
	}
	t.source = c.definitions.String() + body.String()
	return t, c.errs
}

func rendersAny(labels []place, groups []group) bool {
	if len(templatesOf(labels)) > 0 {
		return true
	}
	for _, group := range groups {
		if len(group.places) > 0 {
			return true
		}
	}
	return false
}

// define makes a named part of a Go template.
func define(p place) string {
	return fmt.Sprintf("{{define %s}}%s{{end}}", strconv.Quote(p.path.String()), p.value)
}

func call(path *field.Path) string {
	return fmt.Sprintf("{{template %s .}}%s", strconv.Quote(path.String()), separator)
}

// sample stands in for a node when templates are checked as they are read.
var sample = &corev1.Node{ObjectMeta: metav1.ObjectMeta{
	Name:        "sample",
	UID:         "00000000-0000-0000-0000-000000000000",
	Labels:      map[string]string{"kubernetes.io/hostname": "sample"},
	Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
}}

// sampleNode is what the name of a pool and labels see of the sample.
var sampleNode = map[string]any{"Node": sample}

// readsNode finds an action that reads the Node.
var readsNode = regexp.MustCompile(`{{[^}]*\.Node\b`)

// checkNodeless refuses a value that reads a Node where there is none.
func checkNodeless(p place, why string) field.ErrorList {
	if !readsNode.MatchString(p.value) {
		return nil
	}
	return field.ErrorList{field.Invalid(p.path, p.value, "must not read .Node; it "+why)}
}

// checkShared refuses values that read a Node in a pool that nodes share.
func checkShared(t *Template) field.ErrorList {
	places := slices.Clone(t.labels)
	for i := range t.groups {
		places = append(places, t.groups[i].places...)
	}
	var errs field.ErrorList
	for _, p := range places {
		errs = append(errs, checkNodeless(p, "is of a pool that nodes share")...)
	}
	return errs
}

// named are the actions that reach outside of a value.
var named = regexp.MustCompile(`{{-?\s*(define|block|template)\b`)

// check refuses a value that is no template by itself, such as one that ends the
// definition it is put into, and one that is none within a definition.
func check(renderer *renderer, sample map[string]any, p place) field.ErrorList {
	if named.MatchString(p.value) {
		return field.ErrorList{field.Invalid(p.path, p.value, "is no valid template: define, block and template are not supported")}
	}
	errs := try(renderer, sample, p, p.value)
	if len(errs) == 0 {
		errs = try(renderer, sample, p, define(p)+call(p.path))
	}
	if len(errs) == 0 {
		errs = checkFields(sample, p)
	}
	return errs
}

// try renders one value for the sample. Errors that another object might not
// give, such as a label it lacks, are not held against the template.
func try(renderer *renderer, sample map[string]any, p place, source string) field.ErrorList {
	_, err := renderer.toText(source, 1, sample)
	var execution template.ExecError
	switch {
	case errors.Is(err, errUnstable):
		return field.ErrorList{field.Invalid(p.path, p.value, errUnstable.Error())}
	case errors.Is(err, errTooMuch):
		return field.ErrorList{field.Invalid(p.path, p.value, errTooMuch.Error())}
	case err == nil, errors.As(err, &execution):
		return nil
	}
	return field.ErrorList{field.Invalid(p.path, p.value, "is no valid template: "+firstLine(err))}
}

// firstLine cuts off what kwok's renderer puts behind an error: the text it had
// rendered so far.
func firstLine(err error) string {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// values hands out rendered values in the order of the template.
type values struct {
	parts []string
}

func (v *values) next() string {
	part := v.parts[0]
	v.parts = v.parts[1:]
	return part
}

// render renders for a node, or, without one, for the pool that nodes share.
func (t *text) render(node *lifecycle.Object) (*values, error) {
	if t.source == "" && v1alpha1.IsTemplate(t.poolName) {
		return &values{parts: []string{node.Name()}}, nil
	}
	if t.source == "" {
		return &values{parts: []string{t.poolName}}, nil
	}
	data := map[string]any{}
	if node != nil {
		encoded, err := node.Encoded()
		if err != nil {
			return nil, err
		}
		data["Node"] = encoded
	}
	return renderAll(t.renderer, t.source, t.count, data)
}

// renderAll renders a template that yields that many values.
func renderAll(renderer *renderer, source string, count int, data map[string]any) (*values, error) {
	rendered, err := renderer.toText(source, count, data)
	if err != nil {
		if execution, is := errors.AsType[template.ExecError](err); is {
			return nil, execution
		}
		return nil, err
	}
	parts := strings.Split(string(rendered), separator)
	if len(parts) != count+1 {
		return nil, errors.New("a value rendered a NUL character")
	}
	return &values{parts: parts}, nil
}

// errUnstable refuses functions whose results differ from call to call: every
// reconciliation would find every slice changed and write it again.
var errUnstable = errors.New("uses a function whose result differs from call to call; use uuid or values of .Node instead")

// functions are what templates have besides kwok's own functions.
var functions = func() gotpl.FuncMap {
	functions := gotpl.FuncMap{"uuid": deterministicUUID, "keys": sortedKeys, "values": sortedValues}
	for _, name := range []string{
		"Now", "StartTime", "now", "ago", "date", "dateInZone", "date_in_zone", "htmlDate", "htmlDateInZone",
		"randAlpha", "randAlphaNum", "randAscii", "randNumeric", "randBytes", "randInt", "shuffle", "uuidv4",
		"bcrypt", "htpasswd", "encryptAES", "genPrivateKey", "genCA", "genCAWithKey", "genSelfSignedCert",
		"genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey", "getHostByName", "env", "expandenv",
	} {
		functions[name] = func(...any) (string, error) { return "", errUnstable }
	}
	return functions
}()

// sortedKeys stands in for sprig's keys, whose order differs from call to call.
func sortedKeys(objects ...map[string]any) []string {
	var keys []string
	for _, object := range objects {
		keys = append(keys, slices.Sorted(maps.Keys(object))...)
	}
	return keys
}

// sortedValues stands in for sprig's values: in the order of the keys.
func sortedValues(object map[string]any) []any {
	var values []any
	for _, key := range sortedKeys(object) {
		values = append(values, object[key])
	}
	return values
}

// uuidSpace is the namespace of the UUIDs that templates make.
var uuidSpace = uuid.NewSHA1(uuid.NameSpaceDNS, []byte(v1alpha1.GroupName))

// deterministicUUID makes a UUID (version 5) of its arguments: the same
// arguments always give the same UUID. A field that the Node lacks is refused,
// or all nodes that lack it would share a UUID.
func deterministicUUID(arguments ...any) (string, error) {
	parts := make([]string, len(arguments))
	for i, argument := range arguments {
		if argument == nil {
			return "", fmt.Errorf("argument %d is a field that the Node lacks", i+1)
		}
		parts[i] = fmt.Sprint(argument)
	}
	return uuid.NewSHA1(uuidSpace, []byte(strings.Join(parts, "\x00"))).String(), nil
}
