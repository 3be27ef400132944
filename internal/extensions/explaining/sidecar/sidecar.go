package sidecar

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
	"github.com/kwok-dra/kwok-dra/internal/claims/templates"
	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/extensions/driverpods"
	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/selection"
	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/why"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// Sidecar says what kwok-dra does for the Pods of a cluster, by the configuration it has.
type Sidecar struct {
	// Registered reports whether a real driver is registered with a node. It is nil where
	// that is not known.
	Registered func(ctx context.Context, node *corev1.Node, driver string) (bool, error)

	cluster *why.Cluster
	set     *config.Set
	// managed are the nodes that kwok manages.
	managed *lifecycle.ManagedNodes
	// driverPods finds the driver Pods of templates on a node.
	driverPods func(node *corev1.Node) driverpods.Listed
}

// AddTo adds a Sidecar to a cluster, with the configuration of kwok-dra and the driver Pods on each node.
func AddTo(cluster *why.Cluster, set *config.Set, managed *lifecycle.ManagedNodes, pods func(node *corev1.Node) driverpods.Listed) *Sidecar {
	s := &Sidecar{cluster: cluster, set: set, managed: managed, driverPods: pods}
	cluster.Sidecar = s
	return s
}

// RetryInterval is how long kwok-dra waits before it tries again to prepare claims.
func (s *Sidecar) RetryInterval() time.Duration { return s.set.RetryInterval }

// DescribeSetter says who sets the binding conditions of the devices of a driver, and when.
func (s *Sidecar) DescribeSetter(driver string, allocated time.Time) string {
	if !s.set.HasDriver(driver) {
		return fmt.Sprintf("driver %s has to set them: no template names it", driver)
	}
	delay := s.set.BindingDelay
	return fmt.Sprintf("kwok-dra sets those of driver %s at %s, %s after the allocation (bindingDelay)", driver, allocated.Add(delay).UTC().Format(time.RFC3339), delay)
}

// ForecastPreparation says what kwok-dra would do for a Pod now if it would not prepare its claims,
// why, and what else is known.
func (s *Sidecar) ForecastPreparation(ctx context.Context, pod *corev1.Pod) (now, cause string, details []string) {
	node := s.cluster.Nodes[pod.Spec.NodeName]
	switch {
	case node == nil:
		return fmt.Sprintf("node %s does not exist", pod.Spec.NodeName), "", nil
	case !s.managed.Matches(node):
		return fmt.Sprintf("node %s is not fake, by %s: its own kubelet prepares the claims, and kwok-dra does not", node.Name, s.managed), "", nil
	}
	node = node.DeepCopy()
	lifecycle.Slim(node) // as the sidecar sees it
	v := s.podViewOf(pod, node)
	fail, err := s.set.FailWhen.Matches(ctx, lifecycle.NewObject(pod))
	prepare := false
	if err == nil && !fail {
		prepare, err = s.set.PrepareWhen.Matches(ctx, lifecycle.NewObject(pod))
	}
	switch {
	case err != nil:
		return err.Error(), "", nil
	case facts.ReadyToStart(pod) == "" && s.set.Faithful:
		return "kwok-dra has not given it the status of a Pod that waits: does kwok-dra run, and act for node " + node.Name + "?", "", nil
	case !prepare && !fail:
		return describeUnselected(pod), "", nil
	}
	return s.planPreparation(ctx, v)
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
func (s *Sidecar) planPreparation(ctx context.Context, v *plan.PodView) (now, cause string, details []string) {
	next, err := plan.ForPod(ctx, v, s.cluster.Now)
	if err != nil {
		return err.Error(), "", nil
	}
	if next.Failure == nil { // drivers that no template names are asked last
		missing, known := s.checkRealDrivers(ctx, v)
		if missing != "" {
			return missing, "", known
		}
		return "", "", append(known, "nothing keeps kwok-dra from preparing them now: does it run, and act for node "+v.Node.Name+"?")
	}
	switch next.Failure.Reason {
	case plan.ReasonNoClaim, plan.ReasonNotAllocated, plan.ReasonNotReserved:
		return "", "", nil // the claims say it
	case plan.ReasonNotRegistered, plan.ReasonUnavailable:
		if causes := s.describeUnregistered(ctx, v); len(causes) > 0 {
			cause, details = causes[0], causes[1:]
		}
	}
	return next.Failure.Error(), cause, details
}

// checkRealDrivers says whether the drivers that no template names are registered, as far as that
// is known. Missing is what keeps the claims from being prepared, or "".
func (s *Sidecar) checkRealDrivers(ctx context.Context, v *plan.PodView) (missing string, known []string) {
	for _, driver := range driversOf(v) {
		if s.set.HasDriver(driver) {
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
func (s *Sidecar) podViewOf(pod *corev1.Pod, node *corev1.Node) *plan.PodView {
	known, live := map[string]*resourcev1.ResourceClaim{}, plan.NewLive()
	for _, key := range facts.ClaimKeys(pod) {
		claim := s.cluster.Claims[key]
		if claim != nil {
			known[key.Name] = claim
		}
		live.Claims[key.Name] = claim // what was read is live
	}
	isOnNode := func(slice *resourcev1.ResourceSlice) bool {
		if name := slice.Spec.NodeName; name != nil {
			return *name == node.Name
		}
		shared := s.set.SharedPool(slice.Spec.Driver, slice.Spec.Pool.Name)
		return shared != nil && shared.Selects(node)
	}
	published := templates.Slices{
		Of: func(driver string) (has, known bool) {
			return slices.ContainsFunc(s.cluster.Slices, func(slice *resourcev1.ResourceSlice) bool {
				return slice.Spec.Driver == driver && isOnNode(slice)
			}), true
		},
		Have: func(_ string, result *resourcev1.DeviceRequestAllocationResult) bool {
			return slices.ContainsFunc(s.cluster.Slices, func(slice *resourcev1.ResourceSlice) bool {
				return slice.Spec.Driver == result.Driver && slice.Spec.Pool.Name == result.Pool &&
					slices.ContainsFunc(slice.Spec.Devices, func(d resourcev1.Device) bool { return d.Name == result.Device })
			})
		},
	}
	return &plan.PodView{
		Pod: pod, Node: node, Set: s.set, Driver: templates.New(s.set, node, published, s.driverPods(node).BindTemplate),
		Claims: plan.PodClaims{
			Known: known,
			Live:  live,
			Users: func(*resourcev1.ResourceClaim) []*corev1.Pod { return []*corev1.Pod{pod} },
		},
		Standby: func([]*resourcev1.ResourceClaim) bool { return false },
	}
}

// describeUnregistered says why the drivers of a Pod have not registered with its node, or are down.
func (s *Sidecar) describeUnregistered(ctx context.Context, v *plan.PodView) []string {
	if lifecycle.PluginOf(v.Node) != lifecycle.PluginUp {
		i := slices.IndexFunc(v.Node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == v1alpha1.PluginRegistered })
		condition := v.Node.Status.Conditions[i]
		cause := condition.Reason
		if condition.Message != "" {
			cause += ": " + condition.Message
		}
		return []string{fmt.Sprintf("node %s has the condition %s=%s (%s): a Stage or you set it to True", v.Node.Name, condition.Type, condition.Status, cause)}
	}
	var lines []string
	for _, driver := range driversOf(v) {
		if s.set.HasDriver(driver) {
			causes := s.describeUnpublished(ctx, driver, v.Node)
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

// describeUnpublished says, for each template of a driver, why it publishes nothing on a node.
func (s *Sidecar) describeUnpublished(ctx context.Context, driver string, node *corev1.Node) []string {
	var lines []string
	for _, t := range s.set.Templates {
		if t.Driver != driver && !t.MayBeOf(driver) {
			continue
		}
		if unselected := selection.Of([]*devices.Template{t}, slices.Values([]*corev1.Node{node})); len(unselected) > 0 {
			lines = append(lines, fmt.Sprintf("template %s does not select the node: %s", t.Name, unselected[0].Miss))
			continue
		}
		if matches, err := s.set.PublishWhen(t).Matches(ctx, lifecycle.NewObject(node)); err != nil {
			lines = append(lines, err.Error())
		} else if !matches {
			lines = append(lines, fmt.Sprintf("template %s selects node %s, and its publishWhen does not match the node yet", t.Name, node.Name))
		}
		if selector, ok := driverpods.SelectorOf(t); ok {
			lines = append(lines, s.describeDriverPods(t, selector, node)...)
		}
	}
	return lines
}

// DescribeSilence says why a driver has published nothing: no template names it, or its templates
// select no node.
func (s *Sidecar) DescribeSilence(driver string) []string {
	if !s.set.HasDriver(driver) {
		return []string{"no template names driver " + driver}
	}
	var of []*devices.Template
	for _, t := range s.set.Templates {
		if t.Driver == driver || t.MayBeOf(driver) {
			of = append(of, t)
		}
	}
	var lines []string
	for _, unselected := range selection.Of(of, maps.Values(s.cluster.Nodes)) {
		lines = append(lines, fmt.Sprintf("template %s selects no node: %s", unselected.Template.Name, unselected.Miss))
	}
	return lines
}

// describeDriverPods says that a template has no Ready driver Pod on a node, or returns nil.
func (s *Sidecar) describeDriverPods(t *devices.Template, selector driverpods.Selector, node *corev1.Node) []string {
	on, _ := s.driverPods(node)(t)
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
