package devices

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
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
	// order is that of the devices of all groups.
	order []position
	names map[string]bool
}

// position finds a device in the groups.
type position struct{ group, device int }

// Compile validates a defaulted template and makes it ready for use.
func Compile(t *v1alpha1.ResourcePoolTemplate) (*Template, field.ErrorList) {
	errs := t.Validate()
	if len(errs) > 0 {
		return nil, errs
	}
	compiled := &Template{Name: t.Name, Driver: t.Spec.Driver, Priority: t.Spec.Priority, ReportsHealth: t.Spec.Health == v1alpha1.HealthReport}
	spec := field.NewPath("spec")
	compiled.pool = Pool{
		Driver: t.Spec.Driver, SharedWith: t.Spec.SharedWith, Owner: ownerOf(t),
		PartitionTypeAttribute: t.Spec.PartitionTypeAttribute, SkipNodeOperations: t.Spec.SkipNodeOperations,
	}
	errs = compiled.expand(&t.Spec, spec)
	poolName := place{path: spec.Child("poolName"), value: t.Spec.PoolName}
	compiled.labels = labelPlaces(t.Spec.SliceLabels, spec.Child("sliceLabels"))
	if t.Spec.SharedWith != nil {
		compiled.pool.Name = t.Spec.PoolName
		errs = append(errs, checkShared(compiled)...)
	}
	text, problems := newText(poolName, compiled.labels, compiled.groups)
	compiled.text = text
	errs = append(errs, problems...)
	if len(problems) == 0 {
		errs = append(errs, checkPoolName(&t.Spec, poolName)...)
	}
	compiled.ClaimStatus, problems = newClaimStatus(t.Spec.ClaimStatus, spec.Child("claimStatus"))
	errs = append(errs, problems...)
	return compiled, append(errs, compiled.compileSelectors(t, spec)...)
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
		pool.Devices = append(pool.Devices, t.groups[at.group].devices[at.device])
	}
	return used(&pool)
}

// SharedPool names the pool that the template's nodes share. It is empty where
// each node has a pool of its own.
func (t *Template) SharedPool() string {
	return t.pool.Name
}

// rendered is what a template yields for a node.
type rendered struct {
	poolName string
	labels   map[string]string
	devices  []resourcev1.Device
}

// render renders for a node, or for none.
func (t *Template) render(node *lifecycle.Object) (*rendered, error) {
	made, err := t.renderIn(t.text.view(node))
	if err != nil {
		return nil, fmt.Errorf("render template %s: %w", t.Name, err)
	}
	return made, nil
}

func (t *Template) renderIn(v *view) (*rendered, error) {
	defer v.end()
	made := &rendered{}
	var err error
	if made.poolName, err = v.value(&t.text.poolName, map[string]any{}); err != nil {
		return nil, err
	}
	if errs := v1alpha1.ValidatePoolName(made.poolName, field.NewPath("spec", "poolName")); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	if made.labels, err = renderLabels(t.labels, v); err != nil {
		return nil, err
	}
	byGroup := make([][]resourcev1.Device, len(t.groups))
	for i := range t.groups {
		if byGroup[i], err = t.groups[i].render(v); err != nil {
			return nil, err
		}
	}
	made.devices = make([]resourcev1.Device, len(t.order))
	for i, at := range t.order {
		made.devices[i] = byGroup[at.group][at.device]
	}
	return made, nil
}
