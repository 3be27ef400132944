package devices

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/kwok-dra/kwok-dra/internal/devices/gotemplate"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/internal/util/strict"
	"github.com/kwok-dra/kwok-dra/internal/util/suggest"
	"github.com/kwok-dra/kwok-dra/pkg/api/defaults"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/api/validation"
)

// extensionPart is a part of templates that an extension uses.
type extensionPart struct {
	validate func(spec *v1alpha1.ResourcePoolTemplateSpec, path *field.Path) field.ErrorList
	compile  func(t *Template) field.ErrorList
}

var extensionParts []extensionPart

// RegisterPart has Compile call what checks the fields of the part of a template that an extension
// uses, and what compiles the part. Call it in an init function.
func RegisterPart(validate func(spec *v1alpha1.ResourcePoolTemplateSpec, path *field.Path) field.ErrorList, compile func(t *Template) field.ErrorList) {
	extensionParts = append(extensionParts, extensionPart{validate, compile})
}

// BindPod copies a template for a driver Pod.
type BindPod func(t *Template, pod BoundPod) (*Template, error)

// PodBinder checks what of a template its driver Pods decide. It returns the template with a sample of that
// in its place.
type PodBinder func(source *v1alpha1.ResourcePoolTemplate, path *field.Path) (sample *v1alpha1.ResourcePoolTemplate, bind BindPod, errs field.ErrorList)

var bindPods PodBinder = func(source *v1alpha1.ResourcePoolTemplate, _ *field.Path) (*v1alpha1.ResourcePoolTemplate, BindPod, field.ErrorList) {
	return source, nil, nil
}

// RegisterPodBinder has Compile call a PodBinder. Call it in an init function.
func RegisterPodBinder(binder PodBinder) { bindPods = binder }

// Compile validates and compiles a defaulted template. It returns all errors, without those that
// may only follow from others.
func Compile(source *v1alpha1.ResourcePoolTemplate) (*Template, field.ErrorList) {
	path := field.NewPath("spec")
	source, bind, more := bindPods(source, path)
	t := &Template{
		Name: source.Name, ResourcePoolTemplateSpec: &source.Spec,
		content: poolContent{
			uid: source.UID, poolName: gotemplate.Text{Path: path.Child("poolName"), Source: source.Spec.PoolName},
		},
		Pod: BoundPod{Ready: true}, BindPod: bind,
	}
	for _, key := range slices.Sorted(maps.Keys(t.SliceLabels)) {
		label := gotemplate.Text{Path: path.Child("sliceLabels").Key(key), Source: t.SliceLabels[key]}
		t.content.labels = append(t.content.labels, labelValue{Text: label, key: key})
	}
	errs := validation.ValidateResourcePoolTemplate(source)
	for _, part := range extensionParts {
		errs = append(errs, part.validate(&source.Spec, path)...)
	}
	if len(errs) == 0 {
		errs = checkSize(t.ResourcePoolTemplateSpec, path)
	}
	if len(errs) == 0 {
		errs = expandDevices(t, path)
	} else {
		// The devices are not known. One of each group is enough to check its values.
		for i := range t.Devices {
			g := newGroup(&t.Devices[i], path.Child("devices").Index(i))
			g.addDevice(t.Devices[i].Name)
			t.content.groups = append(t.content.groups, g)
		}
	}
	more = append(more, checkTexts(t)...)
	sample := maps.Clone(sampleAllocated)
	if t.DriverPod != nil {
		sample["DriverPod"] = SamplePod
	}
	var problems field.ErrorList
	t.ClaimStatus, problems = newClaimStatus(source.Spec.ClaimStatus, sample, path.Child("claimStatus"))
	more = append(more, problems...)
	for _, part := range extensionParts {
		more = append(more, part.compile(t)...)
	}
	if selector := source.Spec.PublishWhen; selector != nil {
		t.PublishWhen, problems = lifecycle.NodeCEL.CompileSelector(selector, path.Child("publishWhen"))
		more = append(more, problems...)
	}
	if selector := source.Spec.RetireWhen; selector != nil {
		t.RetireWhen, problems = lifecycle.NodeCEL.CompileSelector(selector, path.Child("retireWhen"))
		more = append(more, problems...)
	}
	if t.NodeSelector != nil {
		var err error
		if t.nodes, err = nodeaffinity.NewNodeSelector(t.NodeSelector); err != nil {
			more = append(more, field.Invalid(path.Child("nodeSelector"), field.OmitValueType{}, err.Error()))
		}
	}
	hidden := strict.Of(errs)
	return t, append(errs, slices.DeleteFunc(more, func(err *field.Error) bool { return hidden.Hides(err.Field) })...)
}

// StandsAlone reports whether an error of a field holds whatever other fields of the template say.
var StandsAlone = regexp.MustCompile(`^spec\.devices\[\d+\]\.(?:attributes|capacity|taints)\b|` +
	`^spec\.(?:nodeSelector|driverPod|poolName|publishWhen|retireWhen|claimStatus|containerEdits|parameters|sliceLabels|health)\b|^metadata\.name$`).MatchString

// checkTexts compiles and checks the texts of the pools. Partitions have texts of their device, so
// it returns one error for each path.
func checkTexts(t *Template) (errs field.ErrorList) {
	if t.SharedWith != nil {
		const why = "is of a pool that nodes share"
		for i := range t.content.labels {
			errs = append(errs, refuseNode(&t.content.labels[i].Text, why)...)
		}
		for _, g := range t.content.groups {
			for i := range g.values {
				errs = append(errs, refuseNode(&g.values[i].Text, why)...)
			}
		}
	}
	data := map[string]any{"Node": SampleNode}
	if t.DriverPod != nil {
		data["DriverPod"] = SamplePod
	}
	poolName := &t.content.poolName
	problems := poolName.Check(data)
	for i := range t.content.labels {
		problems = append(problems, t.content.labels[i].Check(data)...)
	}
	for _, g := range t.content.groups {
		problems = append(problems, g.checkValues(data)...)
	}
	differs := poolName.Reads("Node") || readsPodName.MatchString(poolName.Source) || selectsOneNode(t.NodeSelector)
	if len(problems) == 0 && t.SharedWith == nil && !differs {
		// The scheduler would take the nodes' pools for one that is never complete.
		problems = poolName.Refuse(fmt.Sprintf("must differ from node to node; leave it out for the node's name, or use for example %q; for one pool that nodes share set sharedWith",
			strings.TrimSuffix(defaults.PoolName+"-"+suggest.Label(poolName.Source), "-")))
	}
	paths := sets.Set[string]{}
	return append(errs, slices.DeleteFunc(problems, func(err *field.Error) bool {
		defer paths.Insert(err.Field)
		return paths.Has(err.Field)
	})...)
}

// readsPodName matches a template that reads what differs between driver Pods.
var readsPodName = regexp.MustCompile(`\.DriverPod\.(?:name|uid)\b`)

// selectsOneNode reports whether a selector selects a single node by its name.
func selectsOneNode(selector *corev1.NodeSelector) bool {
	if selector == nil {
		return false
	}
	names := sets.Set[string]{}
	for _, term := range selector.NodeSelectorTerms {
		i := slices.IndexFunc(term.MatchFields, func(r corev1.NodeSelectorRequirement) bool {
			return r.Key == metav1.ObjectNameField && r.Operator == corev1.NodeSelectorOpIn && len(r.Values) == 1
		})
		if i < 0 {
			return false
		}
		names.Insert(term.MatchFields[i].Values[0])
	}
	return len(names) == 1
}

// Limits of what templates make in all: the API limits only each of their parts. A node has some
// dozen devices, with partitions some hundred; pools that nodes share have thousands.
const (
	// MaxTemplateDevices is how many devices a template makes, those of partitions too, and how
	// many counter sets.
	MaxTemplateDevices = 10_000
	// maxTotal is how many devices all templates make together, and how many counter sets: at
	// most so many are on a single node.
	maxTotal = 100_000
)

// checkSize refuses a template that makes too much, before it makes anything.
func checkSize(spec *v1alpha1.ResourcePoolTemplateSpec, path *field.Path) (errs field.ErrorList) {
	devices, sets := 0, 0
	for i := range spec.Devices {
		d := &spec.Devices[i]
		number, each := 1, 1
		if d.Count != nil {
			number = int(*d.Count)
		}
		for j := range d.Partitions {
			each += d.Partitions[j].Number()
		}
		devices += number * each
		if len(d.Counters) > 0 || d.Slots != nil {
			sets += number
		}
	}
	for i := range spec.SharedCounters {
		if count := spec.SharedCounters[i].Count; count != nil {
			sets += int(*count)
		} else {
			sets++
		}
	}
	if devices > MaxTemplateDevices {
		errs = append(errs, field.Invalid(path.Child("devices"), devices, fmt.Sprintf("a template may make at most %d devices, with those of partitions: lower count, or make several templates", MaxTemplateDevices)))
	}
	if sets > MaxTemplateDevices {
		errs = append(errs, field.Invalid(path.Child("sharedCounters"), sets, fmt.Sprintf("a template may make at most %d counter sets, with one for each device with counters or slots: lower count", MaxTemplateDevices)))
	}
	return errs
}

// Total counts what templates make together.
type Total struct{ devices, counterSets int }

// Add adds what a template makes.
func (t *Total) Add(template *Template) {
	t.devices += len(template.content.devices)
	t.counterSets += len(template.content.counterSets)
}

// Excess says why templates that make so much are refused. It is empty if they are not.
func (t *Total) Excess() string {
	number, of := t.devices, "devices"
	if t.counterSets > maxTotal {
		number, of = t.counterSets, "counter sets"
	}
	if number <= maxTotal {
		return ""
	}
	return fmt.Sprintf("all templates together may make at most %d %s, and make %d: lower count, or remove templates", maxTotal, of, number)
}

// SampleNode stands in for a Node when templates are checked.
var SampleNode = &corev1.Node{ObjectMeta: metav1.ObjectMeta{
	Name:        "sample",
	UID:         "00000000-0000-0000-0000-000000000000",
	Labels:      map[string]string{"kubernetes.io/hostname": "sample"},
	Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
}}
