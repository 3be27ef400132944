package devices

import (
	"fmt"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/api/validation"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/strict"
)

// Template is a ResourcePoolTemplate made ready for use: selectors compiled,
// Go templates parsed, values that need no node resolved.
type Template struct {
	// Name is the name of the ResourcePoolTemplate.
	Name string
	// Driver is the DRA driver's name.
	Driver string
	// Priority ranks the template among those of its driver.
	Priority int32
	// PublishWhen and RetireWhen are nil where the template leaves them to the
	// KwokDRAConfiguration.
	PublishWhen, RetireWhen *lifecycle.Selector
	// ClaimStatus says what claims show of prepared devices.
	ClaimStatus *ClaimStatus
	// ReportsHealth reports whether Pods show the health of the devices.
	ReportsHealth bool
	// Origin is the document that the template is from.
	Origin Origin

	nodes *nodeaffinity.NodeSelector
	// nodeSelector is what nodes was made from.
	nodeSelector *corev1.NodeSelector

	text *text
	// labels are those of the slices, in the order of their keys.
	labels []place
	// pool is what all pools of the template have, and the name where they are
	// one that nodes share.
	pool   Pool
	groups []group
	// order is that of the devices of all groups, and positions has them by name.
	order     []position
	positions map[string]position
}

// position finds a device in the groups.
type position struct{ group, device int }

// Compile validates a defaulted template and makes it ready for use. It returns
// all that is wrong with it, but for what may only follow from that.
func Compile(t *v1alpha1.ResourcePoolTemplate) (*Template, field.ErrorList) {
	compiled := &Template{Name: t.Name, Driver: t.Spec.Driver, Priority: t.Spec.Priority, ReportsHealth: t.Spec.Health == v1alpha1.HealthReport}
	spec := field.NewPath("spec")
	compiled.pool = Pool{
		Driver: t.Spec.Driver, SharedWith: t.Spec.SharedWith, Owner: ownerOf(t),
		PartitionTypeAttribute: t.Spec.PartitionTypeAttribute, SkipNodeOperations: t.Spec.SkipNodeOperations,
	}
	errs := validation.ValidateResourcePoolTemplate(t)
	if len(errs) == 0 {
		errs = compiled.expand(&t.Spec, spec)
	} else {
		compiled.groups = unexpanded(t.Spec.Devices, spec.Child("devices"))
	}
	compiled.labels = labelPlaces(t.Spec.SliceLabels, spec.Child("sliceLabels"))
	var more field.ErrorList
	if t.Spec.SharedWith != nil {
		compiled.pool.Name = t.Spec.PoolName
		more = checkShared(compiled)
	}
	more = append(more, compiled.compileText(&t.Spec, spec)...)
	status, problems := newClaimStatus(t.Spec.ClaimStatus, spec.Child("claimStatus"))
	compiled.ClaimStatus = status
	more = append(append(more, problems...), compiled.compileSelectors(t, spec)...)
	return compiled, append(errs, unknown(errs, more)...)
}

// alone is a part that is right or wrong whatever the others say.
var alone = regexp.MustCompile(`^spec\.devices\[\d+\]\.(?:attributes|capacity|taints)\b|` +
	`^spec\.(?:nodeSelector|poolName|publishWhen|retireWhen|claimStatus|sliceLabels|health)\b|^metadata\.name$`)

// StandsAlone reports whether an error of a field is one whatever the other fields
// of the template say.
func StandsAlone(path string) bool {
	return alone.MatchString(path)
}

// unexpanded are groups of one device each, whose values can be checked where the
// devices cannot be told.
func unexpanded(devices []v1alpha1.DeviceTemplate, path *field.Path) []group {
	groups := make([]group, len(devices))
	for i := range devices {
		groups[i] = newGroup(&devices[i], path.Index(i))
		groups[i].devices[0].Name = devices[i].Name
	}
	return groups
}

// unknown are the errors of fields of which nothing wrong is known.
func unknown(known, errs field.ErrorList) field.ErrorList {
	return slices.DeleteFunc(errs, func(err *field.Error) bool {
		return strict.Of(known).Hides(err.Field)
	})
}

func (t *Template) compileText(source *v1alpha1.ResourcePoolTemplateSpec, spec *field.Path) field.ErrorList {
	poolName := place{path: spec.Child("poolName"), value: source.PoolName}
	text, errs := newText(poolName, t.labels, t.groups)
	t.text = text
	if len(errs) == 0 {
		errs = checkPoolName(source, poolName)
	}
	return errs
}

func (t *Template) compileSelectors(source *v1alpha1.ResourcePoolTemplate, spec *field.Path) field.ErrorList {
	var errs field.ErrorList
	if selector := source.Spec.PublishWhen; selector != nil {
		compiled, problems := lifecycle.CompileForNode(selector, spec.Child("publishWhen"))
		t.PublishWhen, errs = compiled, append(errs, problems...)
	}
	if selector := source.Spec.RetireWhen; selector != nil {
		compiled, problems := lifecycle.CompileForNode(selector, spec.Child("retireWhen"))
		t.RetireWhen, errs = compiled, append(errs, problems...)
	}
	if selector := source.Spec.NodeSelector; selector != nil {
		nodes, err := nodeaffinity.NewNodeSelector(selector)
		if err != nil {
			errs = append(errs, field.Invalid(spec.Child("nodeSelector"), field.OmitValueType{}, err.Error()))
		}
		t.nodes, t.nodeSelector = nodes, selector
	}
	return errs
}

// ownerOf refers to a template that is an object in the cluster.
func ownerOf(t *v1alpha1.ResourcePoolTemplate) *metav1.OwnerReference {
	if t.UID == "" {
		return nil
	}
	return &metav1.OwnerReference{
		APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.ResourcePoolTemplateKind, Name: t.Name, UID: t.UID, Controller: new(true),
	}
}

// NodeSelector is the selector as it is written, or nil if the template selects
// every node. It is not to be changed.
func (t *Template) NodeSelector() *corev1.NodeSelector {
	return t.nodeSelector
}

// Selects reports whether the template is for the node.
func (t *Template) Selects(node *corev1.Node) bool {
	return t.nodes == nil || t.nodes.Match(node)
}

// Uses reports whether used finds what it looks for in the template's pools, in
// fields that are not rendered.
func (t *Template) Uses(used func(pool *Pool) bool) bool {
	pool := t.pool
	for _, at := range t.order {
		pool.Devices = append(pool.Devices, *t.device(at))
	}
	return used(&pool)
}

// SharedPool names the pool that the template's nodes share. It is empty where
// each node has a pool of its own.
func (t *Template) SharedPool() string {
	return t.pool.Name
}

// Devices counts the devices that a pool has from the template.
func (t *Template) Devices() int {
	return len(t.order)
}

// device is a device as it is before it is rendered.
func (t *Template) device(at position) *resourcev1.Device {
	return &t.groups[at.group].devices[at.device]
}

// poolName renders the name of the pool on a node.
func (t *Template) poolName(node *lifecycle.Object) (name string, err error) {
	err = t.within(node, func(v *view) error {
		if name, err = v.value(&t.text.poolName, map[string]any{}); err != nil {
			return err
		}
		return validation.ValidatePoolName(name, t.text.poolName.path).ToAggregate()
	})
	return name, err
}

// renderDevice renders one device for a node, or for none.
func (t *Template) renderDevice(at position, v *view) (resourcev1.Device, error) {
	return t.groups[at.group].render(at.device, v)
}

// within renders what is rendered for a node at once, which has one budget.
func (t *Template) within(node *lifecycle.Object, render func(v *view) error) error {
	if err := render(&view{node, newRendering(t.text.values)}); err != nil {
		return fmt.Errorf("render template %s: %w", t.Name, err)
	}
	return nil
}
