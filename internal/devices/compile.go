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

// PartCompiler checks and compiles the part of a validated template that an extension uses.
type PartCompiler func(t *Template) field.ErrorList

var partCompilers []PartCompiler

// RegisterPartCompiler has Compile call the compiler of an extension. Call it in an init function.
func RegisterPartCompiler(compile PartCompiler) { partCompilers = append(partCompilers, compile) }

// Compile validates and compiles a defaulted template. It returns all errors, without those that
// may only follow from others.
func Compile(source *v1alpha1.ResourcePoolTemplate) (*Template, field.ErrorList) {
	path := field.NewPath("spec")
	counts, more := newCounts(source, path)
	if counts != nil {
		source = counts.sampleTemplate()
	}
	t := &Template{
		Name: source.Name, ResourcePoolTemplateSpec: &source.Spec,
		content: poolContent{
			uid: source.UID, poolName: gotemplate.Text{Path: path.Child("poolName"), Source: source.Spec.PoolName},
		},
		podBinding: podBinding{driver: gotemplate.Text{Path: path.Child("driver"), Source: source.Spec.Driver}, counts: counts},
	}
	for _, key := range slices.Sorted(maps.Keys(t.SliceLabels)) {
		text := gotemplate.Text{Path: path.Child("sliceLabels").Key(key), Source: t.SliceLabels[key]}
		t.content.labels = append(t.content.labels, labelValue{Text: text, key: key})
	}
	errs := validation.ValidateResourcePoolTemplate(source)
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
	var problems field.ErrorList
	more = append(more, checkTexts(t)...)
	t.ClaimStatus, problems = newClaimStatus(source.Spec.ClaimStatus, sampleDataFor(t, sampleAllocated), path.Child("claimStatus"))
	more = append(more, problems...)
	for _, compilePart := range partCompilers {
		more = append(more, compilePart(t)...)
	}
	more = append(more, compileSelectors(t, path)...)
	hidden := strict.Of(errs)
	return t, append(errs, slices.DeleteFunc(more, func(err *field.Error) bool { return hidden.Hides(err.Field) })...)
}

// independentParts matches fields that are right or wrong whatever other fields say.
var independentParts = regexp.MustCompile(`^spec\.devices\[\d+\]\.(?:attributes|capacity|taints)\b|` +
	`^spec\.(?:nodeSelector|driverPod|poolName|publishWhen|retireWhen|claimStatus|containerEdits|parameters|sliceLabels|health)\b|^metadata\.name$`)

// sampleDataFor adds a sample driver Pod, for a template that has driver Pods.
func sampleDataFor(t *Template, others map[string]any) map[string]any {
	if t.DriverPod == nil {
		return others
	}
	data := maps.Clone(others)
	data["DriverPod"] = samplePod
	return data
}

// StandsAlone reports whether an error of a field holds whatever other fields of the template say.
func StandsAlone(path string) bool {
	return independentParts.MatchString(path)
}

func compileSelectors(t *Template, path *field.Path) (errs field.ErrorList) {
	if selector := t.ResourcePoolTemplateSpec.PublishWhen; selector != nil {
		t.PublishWhen, errs = lifecycle.CompileForNode(selector, path.Child("publishWhen"))
	}
	if selector := t.ResourcePoolTemplateSpec.RetireWhen; selector != nil {
		compiled, problems := lifecycle.CompileForNode(selector, path.Child("retireWhen"))
		t.RetireWhen, errs = compiled, append(errs, problems...)
	}
	if t.NodeSelector != nil {
		nodes, err := nodeaffinity.NewNodeSelector(t.NodeSelector)
		if err != nil {
			errs = append(errs, field.Invalid(path.Child("nodeSelector"), field.OmitValueType{}, err.Error()))
		}
		t.nodes = nodes
	}
	return errs
}

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
	data := sampleDataFor(t, map[string]any{"Node": SampleNode})
	problems := t.content.poolName.Check(data)
	if t.NamesDriver() {
		problems = append(problems, t.driver.Check(sampleDataFor(t, map[string]any{}))...)
	}
	for i := range t.content.labels {
		problems = append(problems, t.content.labels[i].Check(data)...)
	}
	for _, g := range t.content.groups {
		problems = append(problems, g.checkValues(data)...)
	}
	if len(problems) == 0 {
		return append(errs, checkPoolName(t)...)
	}
	paths := sets.Set[string]{}
	return append(errs, slices.DeleteFunc(problems, func(err *field.Error) bool {
		defer paths.Insert(err.Field)
		return paths.Has(err.Field)
	})...)
}

// readsPodName matches a template that reads what differs between driver Pods.
var readsPodName = regexp.MustCompile(`\.DriverPod\.(?:name|uid)\b`)

// checkPoolName refuses a name that is the same on every node. The scheduler would take the nodes'
// pools for one that is never complete.
func checkPoolName(t *Template) field.ErrorList {
	name := &t.content.poolName
	if t.SharedWith != nil || name.Reads("Node") || readsPodName.MatchString(name.Source) || selectsOneNode(t.NodeSelector) {
		return nil
	}
	return name.Refuse(fmt.Sprintf("must differ from node to node; leave it out for the node's name, or use for example %q; for one pool that nodes share set sharedWith",
		strings.TrimSuffix(defaults.PoolName+"-"+suggest.Label(name.Source), "-")))
}

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

// SampleNode stands in for a Node when templates are checked.
var SampleNode = &corev1.Node{ObjectMeta: metav1.ObjectMeta{
	Name:        "sample",
	UID:         "00000000-0000-0000-0000-000000000000",
	Labels:      map[string]string{"kubernetes.io/hostname": "sample"},
	Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
}}
