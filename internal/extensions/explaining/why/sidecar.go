package why

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
	"github.com/kwok-dra/kwok-dra/internal/claims/templates"
	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/extensions/driverpods"
	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/selection"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// Sidecar is what kwok-dra works with, as far as the cluster shows it.
type Sidecar struct {
	Set *config.Set
	// Managed are the nodes that kwok manages.
	Managed *lifecycle.ManagedNodes
	Slices  []*resourcev1.ResourceSlice
	// DriverPods finds the driver Pods of templates on a node.
	DriverPods func(node *corev1.Node) driverpods.Listed
	// Registered reports whether a real driver is registered with a node. It is nil where
	// that is not known.
	Registered func(ctx context.Context, node *corev1.Node, driver string) (bool, error)
}

// forecastPreparation says what kwok-dra would do for a Pod now if it would not prepare its claims,
// why, and what else is known.
func (c *Cluster) forecastPreparation(ctx context.Context, pod *corev1.Pod) (now, cause string, details []string) {
	if c.Nodes == nil || c.Sidecar == nil {
		return "", "", nil
	}
	node := c.Nodes[pod.Spec.NodeName]
	switch {
	case node == nil:
		return fmt.Sprintf("node %s does not exist", pod.Spec.NodeName), "", nil
	case !c.Sidecar.Managed.Matches(node):
		return fmt.Sprintf("node %s is not fake, by %s: its own kubelet prepares the claims, and kwok-dra does not", node.Name, c.Sidecar.Managed), "", nil
	}
	node = node.DeepCopy()
	lifecycle.Slim(node) // as the sidecar sees it
	v := c.podViewOf(pod, node)
	set := c.Sidecar.Set
	fail, err := set.FailWhen.Matches(ctx, lifecycle.PodObject(pod))
	prepare := false
	if err == nil && !fail {
		prepare, err = set.PrepareWhen.Matches(ctx, lifecycle.PodObject(pod))
	}
	switch {
	case err != nil:
		return err.Error(), "", nil
	case facts.ReadyToStart(pod) == "" && set.Faithful:
		return "kwok-dra has not given it the status of a Pod that waits: does kwok-dra run, and act for node " + node.Name + "?", "", nil
	case !prepare && !fail:
		return describeUnselected(pod), "", nil
	}
	return c.planPreparation(ctx, v)
}

// describeUnselected says that no Stage lets kwok-dra prepare the claims.
func describeUnselected(pod *corev1.Pod) string {
	text := "prepareWhen of the KwokDRAConfiguration does not select the Pod yet"
	if facts.PodCondition(pod, v1alpha1.PrepareResources).Status != "" {
		return text
	}
	text += fmt.Sprintf(": it has no condition %s, which the Stage %s writes", v1alpha1.PrepareResources, prepareStage)
	if delay := pod.Annotations[prepareStage+delaySetting]; delay != "" {
		text += " after its delay of " + delay
	}
	return text
}

// The Stage that has claims prepared, and its setting for the time until it is played.
const (
	prepareStage = "pod-prepare"
	delaySetting = ".stage.kwok.x-k8s.io/delay"
)

// planPreparation plans as kwok-dra does, and says what would keep the claims from being prepared.
func (c *Cluster) planPreparation(ctx context.Context, v *plan.PodView) (now, cause string, details []string) {
	next, err := plan.ForPod(ctx, v, c.Now)
	if err != nil {
		return err.Error(), "", nil
	}
	if next.Failure == nil { // drivers that no template names are asked last
		missing, known := c.Sidecar.checkRealDrivers(ctx, v)
		if missing != "" {
			return missing, "", known
		}
		return "", "", append(known, "nothing keeps kwok-dra from preparing them now: does it run, and act for node "+v.Node.Name+"?")
	}
	switch next.Failure.Reason {
	case plan.ReasonNoClaim, plan.ReasonNotAllocated, plan.ReasonNotReserved:
		return "", "", nil // the claims say it
	case plan.ReasonNotRegistered, plan.ReasonUnavailable:
		if causes := c.describeUnregistered(ctx, v); len(causes) > 0 {
			cause, details = causes[0], causes[1:]
		}
	}
	return next.Failure.Error(), cause, details
}

// checkRealDrivers says whether the drivers that no template names are registered, as far as that
// is known. Missing is what keeps the claims from being prepared, or "".
func (s *Sidecar) checkRealDrivers(ctx context.Context, v *plan.PodView) (missing string, known []string) {
	for _, driver := range driversOf(v) {
		if s.Set.HasDriver(driver) {
			continue
		}
		if s.Registered == nil {
			missing = cmp.Or(missing, fmt.Sprintf("no template names driver %s, and whether its plugin is registered with node %s is not known: give kwok-dra's templates with -f, or its --plugins-dir", driver, v.Node.Name))
			continue
		}
		switch registered, err := s.Registered(ctx, v.Node, driver); {
		case err != nil:
			known = append(known, fmt.Sprintf("whether driver %s is registered with node %s is not known: %v", driver, v.Node.Name, err))
		case registered:
			known = append(known, fmt.Sprintf("the real driver %s is registered with node %s, and kwok-dra asks it to prepare the claims", driver, v.Node.Name))
		default:
			missing = cmp.Or(missing, fmt.Sprintf("the real driver %s is not registered with node %s: start its plugin with the folder of the node in kwok-dra's --plugins-dir", driver, v.Node.Name))
			known = append(known, "no template names driver "+driver+", so it has to be a real one")
		}
	}
	return missing, known
}

// podViewOf returns what kwok-dra sees of a Pod.
func (c *Cluster) podViewOf(pod *corev1.Pod, node *corev1.Node) *plan.PodView {
	known, live := map[string]*resourcev1.ResourceClaim{}, plan.NewLive()
	for _, key := range facts.ClaimKeys(pod) {
		claim := c.Claims[key]
		if claim != nil {
			known[key.Name] = claim
		}
		live.Claims[key.Name] = claim // what was read is live
	}
	return &plan.PodView{
		Pod: pod, Node: node, Set: c.Sidecar.Set, Driver: c.Sidecar.newDriver(node),
		Claims: plan.PodClaims{
			Known: known,
			Live:  live,
			Users: func(*resourcev1.ResourceClaim) []*corev1.Pod { return []*corev1.Pod{pod} },
		},
		Standby: func([]*resourcev1.ResourceClaim) bool { return false },
	}
}

func (s *Sidecar) newDriver(node *corev1.Node) *templates.Driver {
	return templates.New(s.Set, node, templates.Slices{
		Of: func(driver string) (has, known bool) {
			return slices.ContainsFunc(s.Slices, func(slice *resourcev1.ResourceSlice) bool {
				return slice.Spec.Driver == driver && s.isOn(slice, node)
			}), true
		},
		Have: func(_ string, result *resourcev1.DeviceRequestAllocationResult) bool {
			return slices.ContainsFunc(s.Slices, func(slice *resourcev1.ResourceSlice) bool { return hasDeviceOf(slice, result) })
		},
	}, s.DriverPods(node))
}

// isOn reports whether a slice is of a node, or of a pool that the node shares.
func (s *Sidecar) isOn(slice *resourcev1.ResourceSlice, node *corev1.Node) bool {
	if name := slice.Spec.NodeName; name != nil {
		return *name == node.Name
	}
	t := s.Set.SharedPool(slice.Spec.Driver, slice.Spec.Pool.Name)
	return t != nil && t.Selects(node)
}

func hasDeviceOf(slice *resourcev1.ResourceSlice, result *resourcev1.DeviceRequestAllocationResult) bool {
	return slice.Spec.Driver == result.Driver && slice.Spec.Pool.Name == result.Pool &&
		slices.ContainsFunc(slice.Spec.Devices, func(d resourcev1.Device) bool { return d.Name == result.Device })
}

// describeUnregistered says why the drivers of a Pod have not registered with its node, or are down.
func (c *Cluster) describeUnregistered(ctx context.Context, v *plan.PodView) []string {
	if lifecycle.PluginOf(v.Node) != lifecycle.PluginUp {
		condition := nodeCondition(v.Node, v1alpha1.PluginRegistered)
		return []string{fmt.Sprintf("node %s has the condition %s=%s (%s): a Stage or you set it to True", v.Node.Name, condition.Type, condition.Status, joinNonEmpty(": ", condition.Reason, condition.Message))}
	}
	var lines []string
	for _, driver := range driversOf(v) {
		if c.Sidecar.Set.HasDriver(driver) {
			causes := c.Sidecar.describeUnpublished(ctx, driver, v.Node)
			if registered, err := v.Driver.Registered(driver); err == nil && !registered && len(causes) == 0 {
				causes = []string{fmt.Sprintf("driver %s has published nothing on node %s yet: kubectl describe node %s says what fails", driver, v.Node.Name, v.Node.Name)}
			}
			lines = append(lines, causes...)
		}
	}
	return lines
}

// driversOf returns the drivers of the devices of a Pod.
func driversOf(v *plan.PodView) []string {
	var drivers []string
	for _, claim := range v.Claims.Known {
		if claim.Status.Allocation == nil {
			continue
		}
		for i := range claim.Status.Allocation.Devices.Results {
			drivers = append(drivers, claim.Status.Allocation.Devices.Results[i].Driver)
		}
	}
	slices.Sort(drivers)
	return slices.Compact(drivers)
}

func nodeCondition(node *corev1.Node, kind corev1.NodeConditionType) *corev1.NodeCondition {
	i := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == kind })
	if i < 0 {
		return nil
	}
	return &node.Status.Conditions[i]
}

// describeUnpublished says, for each template of a driver, why it publishes nothing on a node.
func (s *Sidecar) describeUnpublished(ctx context.Context, driver string, node *corev1.Node) []string {
	var lines []string
	for _, t := range s.Set.Templates {
		if t.Driver != driver && !t.MayBeOf(driver) {
			continue
		}
		if unselected := selection.Of([]*devices.Template{t}, slices.Values([]*corev1.Node{node})); len(unselected) > 0 {
			lines = append(lines, fmt.Sprintf("template %s does not select the node: %s", t.Name, unselected[0].Miss))
			continue
		}
		lines = append(lines, s.describeTemplateWait(ctx, t, node)...)
	}
	return lines
}

// describeSilence says why a driver has published nothing: no template names it, or its templates
// select no node.
func (s *Sidecar) describeSilence(driver string, nodes map[string]*corev1.Node) []string {
	if s == nil {
		return nil
	}
	if !s.Set.HasDriver(driver) {
		return []string{"no template names driver " + driver}
	}
	var of []*devices.Template
	for _, t := range s.Set.Templates {
		if t.Driver == driver || t.MayBeOf(driver) {
			of = append(of, t)
		}
	}
	var lines []string
	for _, unselected := range selection.Of(of, maps.Values(nodes)) {
		lines = append(lines, fmt.Sprintf("template %s selects no node: %s", unselected.Template.Name, unselected.Miss))
	}
	return lines
}

// describeTemplateWait says what a template waits for on a node that it selects.
func (s *Sidecar) describeTemplateWait(ctx context.Context, t *devices.Template, node *corev1.Node) []string {
	var lines []string
	if matches, err := s.Set.PublishWhen(t).Matches(ctx, lifecycle.NodeObject(node)); err != nil {
		lines = append(lines, err.Error())
	} else if !matches {
		lines = append(lines, fmt.Sprintf("template %s selects node %s, and its publishWhen does not match the node yet", t.Name, node.Name))
	}
	if selector, ok := driverpods.SelectorOf(t); ok {
		lines = append(lines, s.describeDriverPods(t, selector, node)...)
	}
	return lines
}

// describeDriverPods says that a template has no Ready driver Pod on a node, or returns nil.
func (s *Sidecar) describeDriverPods(t *devices.Template, selector driverpods.Selector, node *corev1.Node) []string {
	on, _ := s.DriverPods(node)(t)
	var names []string
	for _, pod := range on {
		if pod.Ready {
			return nil
		}
		names = append(names, pod.Namespace+"/"+pod.Name)
	}
	if len(names) > 0 {
		return []string{fmt.Sprintf("template %s needs a driver Pod on node %s that is Ready, and this is not: %s", t.Name, node.Name, strings.Join(names, ", "))}
	}
	where := "all namespaces"
	if selector.Namespace != "" {
		where = "namespace " + selector.Namespace
	}
	return []string{fmt.Sprintf("template %s needs a driver Pod on node %s, and there is none with the labels %s in %s", t.Name, node.Name, selector.Labels, where)}
}
