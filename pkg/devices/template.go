// Package devices turns templates and a node into the resource pools that
// should exist. Everything in it is pure: the same templates and node always
// give the same pools, so that a restart finds nothing to write.
package devices

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/kwok-dra/kwok-dra/pkg/api/defaults"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/api/validation"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/parameters"
	"github.com/kwok-dra/kwok-dra/pkg/strict"
	"github.com/kwok-dra/kwok-dra/pkg/suggest"
)

// cannotRender is the error of a template.
const cannotRender = "render template %s: %w"

// Template is a ResourcePoolTemplate made ready for use: selectors compiled,
// Go templates parsed, values that need no node resolved.
type Template struct {
	// Name is the name of the ResourcePoolTemplate.
	Name string
	// The spec is as it is written. It is not to be changed.
	*v1alpha1.ResourcePoolTemplateSpec
	// PublishWhen and RetireWhen are nil where the template leaves them to the
	// KwokDRAConfiguration.
	PublishWhen, RetireWhen *lifecycle.Selector
	// ClaimStatus says what claims show of prepared devices.
	ClaimStatus *ClaimStatus
	// ContainerEdits say what containers with devices of the template see.
	ContainerEdits ContainerEdits
	// Parameters says which opaque parameters the driver takes. It is nil where it takes any.
	Parameters *parameters.Kinds
	// Origin is the document that the template is from.
	Origin Origin

	nodes *nodeaffinity.NodeSelector
	// counts are nil where no driver Pod says how many devices there are.
	counts *counts
	contents
	*driverPods
}

// contents is what the pools of a template have, before it is rendered for a node.
type contents struct {
	// uid is that of the template's object in the cluster, if there is one.
	uid  types.UID
	name place
	// labels are those of the slices, in the order of their keys.
	labels      []place
	counterSets []resourcev1.CounterSet
	groups      []*group
	// devices are those of all groups in the order of the pool, and byName has them
	// by name.
	devices []*device
	byName  map[string]*device
	// split are the names of the devices in each slice, where the template says so.
	split [][]string
}

// Compile validates a defaulted template and makes it ready for use. It returns
// all that is wrong with it, but for what may only follow from that.
func Compile(source *v1alpha1.ResourcePoolTemplate) (*Template, field.ErrorList) {
	spec := field.NewPath("spec")
	counts, more := newCounts(source, spec)
	if counts != nil {
		source = counts.sample()
	}
	t := &Template{counts: counts, Name: source.Name, ResourcePoolTemplateSpec: &source.Spec, contents: contents{
		uid: source.UID, name: place{path: spec.Child("poolName"), value: source.Spec.PoolName},
	}, driverPods: newDriverPods(&source.Spec, spec.Child("driver"))}
	for _, key := range slices.Sorted(maps.Keys(t.SliceLabels)) {
		t.labels = append(t.labels, place{key: key, path: spec.Child("sliceLabels").Key(key), value: t.SliceLabels[key]})
	}
	errs := validation.ValidateResourcePoolTemplate(source)
	if len(errs) == 0 {
		errs = t.checkSize(spec)
	}
	if len(errs) == 0 {
		errs = t.expand(spec)
	} else {
		// Values can be checked, by one device of each group, where the devices cannot be told.
		for i := range t.Devices {
			g := newGroup(&t.Devices[i], spec.Child("devices").Index(i))
			g.addDevice(t.Devices[i].Name)
			t.groups = append(t.groups, g)
		}
	}
	var problems field.ErrorList
	if t.SharedWith != nil {
		more = append(more, t.checkShared()...)
	}
	more = append(more, t.checkTexts()...)
	t.ClaimStatus, problems = newClaimStatus(source.Spec.ClaimStatus, t.samples(sampleAllocated), spec.Child("claimStatus"))
	more = append(more, problems...)
	t.ContainerEdits, problems = newContainerEdits(source.Spec.ContainerEdits, spec.Child("containerEdits"))
	more = append(append(more, problems...), t.compileSelectors(spec)...)
	if source.Spec.Parameters != nil {
		t.Parameters, problems = parameters.Compile(source.Spec.Parameters, spec.Child("parameters"))
		more = append(more, problems...)
	}
	hidden := strict.Of(errs)
	return t, append(errs, slices.DeleteFunc(more, func(err *field.Error) bool { return hidden.Hides(err.Field) })...)
}

// alone is a part that is right or wrong whatever the others say.
var alone = regexp.MustCompile(`^spec\.devices\[\d+\]\.(?:attributes|capacity|taints)\b|` +
	`^spec\.(?:nodeSelector|driverPod|poolName|publishWhen|retireWhen|claimStatus|containerEdits|parameters|sliceLabels|health)\b|^metadata\.name$`)

// StandsAlone reports whether an error of a field is one whatever the other fields
// of the template say.
func StandsAlone(path string) bool {
	return alone.MatchString(path)
}

func (t *Template) compileSelectors(spec *field.Path) (errs field.ErrorList) {
	if selector := t.ResourcePoolTemplateSpec.PublishWhen; selector != nil {
		t.PublishWhen, errs = lifecycle.CompileForNode(selector, spec.Child("publishWhen"))
	}
	if selector := t.ResourcePoolTemplateSpec.RetireWhen; selector != nil {
		compiled, problems := lifecycle.CompileForNode(selector, spec.Child("retireWhen"))
		t.RetireWhen, errs = compiled, append(errs, problems...)
	}
	if t.NodeSelector != nil {
		nodes, err := nodeaffinity.NewNodeSelector(t.NodeSelector)
		if err != nil {
			errs = append(errs, field.Invalid(spec.Child("nodeSelector"), field.OmitValueType{}, err.Error()))
		}
		t.nodes = nodes
	}
	return errs
}

// Selects reports whether the template is for the node.
func (t *Template) Selects(node *corev1.Node) bool {
	return t.nodes == nil || t.nodes.Match(node)
}

// Uses reports whether used finds what it looks for in the template's pools, in
// fields that are not rendered.
func (t *Template) Uses(used func(pool *Pool) bool) bool {
	pool := t.newPool(t.SharedPool())
	for _, d := range t.devices {
		pool.Devices = append(pool.Devices, d.Device)
	}
	return used(&pool)
}

// SharedPool names the pool that the template's nodes share. It is empty where
// each node has a pool of its own.
func (t *Template) SharedPool() string {
	if t.SharedWith == nil {
		return ""
	}
	return t.PoolName
}

// Size counts the devices that a pool has from the template.
func (t *Template) Size() int {
	return len(t.devices)
}

// has reports whether a device of that name is made from the template.
func (t *Template) has(device string) bool {
	return t.byName[device] != nil
}

// newPool is a pool without templates.
func (t *Template) newPool(name string) Pool {
	return Pool{
		Driver: t.Driver, Name: name, SharedWith: t.SharedWith,
		PartitionTypeAttribute: t.PartitionTypeAttribute, SkipNodeOperations: t.SkipNodeOperations,
	}
}

// poolOn renders the name of the pool on a node.
func (t *Template) poolOn(node *lifecycle.Object) (string, error) {
	name, err := t.name.text(t.newRendering(node), map[string]any{})
	if err == nil {
		err = validation.ValidatePoolName(name, t.name.path).ToAggregate()
	}
	if err != nil {
		return "", fmt.Errorf(cannotRender, t.Name, err)
	}
	return name, nil
}

// newRendering renders the template for a node, or for none.
func (t *Template) newRendering(node *lifecycle.Object) *rendering {
	values := 1 + len(t.labels)
	for _, g := range t.groups {
		values += len(g.devices) * len(g.places)
	}
	r := newRendering(values)
	r.node = node
	if t.driverPods != nil {
		r.pod = t.data
	}
	return r
}

// checkTexts checks the pool's name, the labels and the places of all groups. Partitions
// have places of their device: each path is told of once.
func (t *Template) checkTexts() field.ErrorList {
	node := t.samples(map[string]any{"Node": sample})
	errs := t.name.check(node)
	if t.NamesDriver() {
		errs = append(errs, t.driver.check(t.samples(map[string]any{}))...)
	}
	for i := range t.labels {
		errs = append(errs, t.labels[i].check(node)...)
	}
	for _, g := range t.groups {
		errs = append(errs, g.settle(node)...)
	}
	if len(errs) == 0 {
		return t.checkPoolName()
	}
	told := sets.Set[string]{}
	return slices.DeleteFunc(errs, func(err *field.Error) bool {
		defer told.Insert(err.Field)
		return told.Has(err.Field)
	})
}

// checkShared refuses values that read a Node in a pool that nodes share.
func (t *Template) checkShared() field.ErrorList {
	places := slices.Clone(t.labels)
	for _, g := range t.groups {
		places = append(places, g.places...)
	}
	var errs field.ErrorList
	for _, p := range places {
		errs = append(errs, p.checkNodeless("is of a pool that nodes share")...)
	}
	return errs
}

// readsPodName finds an action that reads what no two driver Pods have in common.
var readsPodName = regexp.MustCompile(`\.DriverPod\.(?:name|uid)\b`)

// checkPoolName refuses a name that is the same on every node: their pools would
// be one to the scheduler, and never complete.
func (t *Template) checkPoolName() field.ErrorList {
	if t.SharedWith != nil || reads(t.PoolName, "Node") || readsPodName.MatchString(t.PoolName) || selectsOneNode(t.NodeSelector) {
		return nil
	}
	return t.name.refuse(fmt.Sprintf("must differ from node to node; leave it out for the node's name, or use for example %q; for one pool that nodes share set sharedWith",
		strings.TrimSuffix(defaults.PoolName+"-"+suggest.Label(t.PoolName), "-")))
}

// selectsOneNode reports whether a selector names one node.
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
