package story

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// requireWellFormed fails the test if the API server would refuse something of a story, or if something refers to what
// the story does not have.
func requireWellFormed(t *testing.T, s *Story) {
	t.Helper()
	if problems := problemsOf(s); len(problems) > 0 {
		var text strings.Builder
		require.NoError(t, s.WriteYAML(&text))
		t.Fatalf("seed %d:\n%s\n%s", s.Seed, strings.Join(problems, "\n"), text.String())
	}
}

// checker collects what is wrong with a story.
type checker struct {
	created  *catalog
	problems []string
}

func (c *checker) check(holds bool, format string, values ...any) {
	if !holds {
		c.problems = append(c.problems, fmt.Sprintf(format, values...))
	}
}

func problemsOf(s *Story) []string {
	c := &checker{created: createdObjects(s)}
	existing := map[Ref]bool{}
	for i := range s.Steps {
		step := &s.Steps[i]
		c.check(step.Say != "", "step %d says nothing", i)
		for _, object := range step.Create {
			ref := refTo(object)
			c.check(!existing[ref], "%v exists already", ref)
			existing[ref] = true
			c.checkObject(s, object)
		}
		for _, object := range step.Replace {
			c.check(existing[refTo(object)], "%v is replaced, and does not exist", refTo(object))
			c.checkObject(s, object)
		}
		for _, patch := range step.Patch {
			c.check(existing[patch.Ref], "%v is patched, and does not exist", patch.Ref)
		}
		for _, deletion := range step.Delete {
			c.check(existing[deletion.Ref], "%v is deleted, and does not exist", deletion.Ref)
			existing[deletion.Ref] = deletion.IsGraceful
		}
		for _, node := range step.Drain {
			c.check(existing[Ref{"v1", "Node", node}], "node %s is drained, and does not exist", node)
		}
	}
	c.check(s.Steps[len(s.Steps)-1].Rest, "the last step does not rest")
	return c.problems
}

func (c *checker) checkObject(s *Story, object Object) {
	ref := refTo(object)
	k, isKnown := kinds[ref.Kind]
	c.check(isKnown, "kind %s is unknown", ref.Kind)
	c.check(len(validation.IsDNS1123Subdomain(ref.Name)) == 0, "%v: the name", ref)
	c.check(object.GetLabels()[Label] == s.ID, "%v lacks the label of the story", ref)
	if k.isNamespaced {
		c.check(object.GetNamespace() == s.ID, "%v is in namespace %q", ref, object.GetNamespace())
	} else {
		c.check(object.GetNamespace() == "" && strings.HasPrefix(ref.Name, s.ID), "%v: its name is not the story's alone", ref)
	}
	switch object := object.(type) {
	case *resourcev1.ResourceSlice:
		c.checkSlice(&object.Spec, object.Name)
	case *resourcev1.ResourceClaim:
		c.checkClaim(&object.Spec.Devices, object.Name)
	case *resourcev1.ResourceClaimTemplate:
		c.checkClaim(&object.Spec.Spec.Devices, object.Name)
	case *resourcev1.DeviceTaintRule:
		c.checkTaints([]resourcev1.DeviceTaint{object.Spec.Taint}, object.Name)
	case *corev1.Pod:
		c.checkPod(object)
	}
}

func (c *checker) checkSlice(spec *resourcev1.ResourceSliceSpec, name string) {
	c.check(len(spec.Driver) <= resourcev1.DriverNameMaxLength, "%s: the driver %s", name, spec.Driver)
	c.check(spec.Pool.ResourceSliceCount > 0 && spec.Pool.Generation > 0, "%s: the pool %v", name, spec.Pool)
	ways := 0
	for _, isSet := range []bool{spec.NodeName != nil, spec.NodeSelector != nil, spec.AllNodes != nil, spec.PerDeviceNodeSelection != nil} {
		if isSet {
			ways++
		}
	}
	c.check(ways == 1, "%s has %d ways to its nodes", name, ways)
	c.check(spec.NodeName == nil || c.created.has("Node", *spec.NodeName), "%s: its node does not exist", name)
	seen := map[string]bool{}
	for i := range spec.Devices {
		device := &spec.Devices[i]
		c.check(!seen[device.Name] && len(validation.IsDNS1123Label(device.Name)) == 0, "%s: device name %s", name, device.Name)
		seen[device.Name] = true
		isAttached := device.NodeName != nil || device.NodeSelector != nil || device.AllNodes != nil
		c.check(isAttached == (spec.PerDeviceNodeSelection != nil), "%s: the nodes of device %s", name, device.Name)
		c.check(device.NodeName == nil || c.created.has("Node", *device.NodeName), "%s: the node of device %s does not exist", name, device.Name)
		c.check((len(device.BindingConditions) == 0) == (len(device.BindingFailureConditions) == 0), "%s: the binding conditions of %s", name, device.Name)
		c.checkTaints(device.Taints, name)
		for _, consumption := range device.ConsumesCounters {
			c.check(c.created.counters[[3]string{spec.Driver, spec.Pool.Name, consumption.CounterSet}], "%s: device %s consumes of %s, which does not exist", name, device.Name, consumption.CounterSet)
		}
		for capacity, value := range device.Capacity {
			c.check(value.RequestPolicy == nil || device.AllowMultipleAllocations != nil, "%s: the policy of %s of %s", name, capacity, device.Name)
			c.checkPolicy(&value, name)
		}
	}
}

func (c *checker) checkPolicy(capacity *resourcev1.DeviceCapacity, name string) {
	policy := capacity.RequestPolicy
	if policy == nil {
		return
	}
	c.check(policy.Default != nil && policy.Default.Cmp(capacity.Value) <= 0, "%s: the default of a policy", name)
	for i := range policy.ValidValues {
		c.check(policy.ValidValues[i].Cmp(capacity.Value) <= 0, "%s: a value of a policy is too large", name)
		c.check(i == 0 || policy.ValidValues[i-1].Cmp(policy.ValidValues[i]) < 0, "%s: the values of a policy are not sorted", name)
	}
	if valid := policy.ValidRange; valid != nil {
		c.check(valid.Min != nil && valid.Min.Cmp(*policy.Default) <= 0, "%s: the least value of a policy", name)
		c.check(valid.Max == nil || valid.Max.Cmp(*policy.Default) >= 0 && valid.Max.Cmp(capacity.Value) <= 0, "%s: the largest value of a policy", name)
		if valid.Step != nil {
			c.check((policy.Default.Value()-valid.Min.Value())%valid.Step.Value() == 0, "%s: the default of a policy is between steps", name)
			c.check(valid.Max == nil || (valid.Max.Value()-valid.Min.Value())%valid.Step.Value() == 0, "%s: the largest value of a policy is between steps", name)
		}
	}
}

func (c *checker) checkTaints(taints []resourcev1.DeviceTaint, name string) {
	for _, taint := range taints {
		c.check(len(validation.IsQualifiedName(taint.Key)) == 0 && taint.Effect != "", "%s: taint %v", name, taint)
	}
}

func (c *checker) checkClaim(spec *resourcev1.DeviceClaim, name string) {
	c.check(len(spec.Requests) > 0, "%s has no requests", name)
	for i := range spec.Requests {
		request := &spec.Requests[i]
		c.check((request.Exactly == nil) != (len(request.FirstAvailable) == 0), "%s: request %s", name, request.Name)
		if request.Exactly != nil {
			c.checkRequest(request.Exactly.DeviceClassName, request.Exactly.AllocationMode, request.Exactly.Count, name)
		}
		for j := range request.FirstAvailable {
			way := &request.FirstAvailable[j]
			c.checkRequest(way.DeviceClassName, way.AllocationMode, way.Count, name)
		}
	}
	for _, constraint := range spec.Constraints {
		c.check((constraint.MatchAttribute == nil) != (constraint.DistinctAttribute == nil), "%s: a constraint", name)
		c.checkRequestNames(spec, constraint.Requests, name)
	}
	for _, config := range spec.Config {
		c.checkRequestNames(spec, config.Requests, name)
	}
}

func (c *checker) checkRequest(class string, mode resourcev1.DeviceAllocationMode, count int64, name string) {
	c.check(c.created.has("DeviceClass", class), "%s: class %s does not exist", name, class)
	c.check((mode == resourcev1.DeviceAllocationModeExactCount) == (count > 0), "%s: %s and count %d", name, mode, count)
}

func (c *checker) checkRequestNames(spec *resourcev1.DeviceClaim, names []string, name string) {
	for _, request := range names {
		c.check(hasRequest(spec.Requests, request), "%s: request %s does not exist", name, request)
	}
}

func (c *checker) checkPod(pod *corev1.Pod) {
	c.check(pod.Spec.PriorityClassName == "" || c.created.has("PriorityClass", pod.Spec.PriorityClassName), "%s: its priority class does not exist", pod.Name)
	group := pod.Spec.SchedulingGroup
	c.check(group == nil || c.created.has("PodGroup", *group.PodGroupName), "%s: its group does not exist", pod.Name)
	seen := map[string]bool{}
	for _, claim := range pod.Spec.ResourceClaims {
		c.check(!seen[claim.Name], "%s: two claims %s", pod.Name, claim.Name)
		seen[claim.Name] = true
		if claim.ResourceClaimName != nil {
			c.check(c.created.has("ResourceClaim", *claim.ResourceClaimName), "%s: claim %s is never made", pod.Name, *claim.ResourceClaimName)
		} else {
			c.check(c.created.has("ResourceClaimTemplate", *claim.ResourceClaimTemplateName), "%s: template %s is never made", pod.Name, *claim.ResourceClaimTemplateName)
		}
	}
	for i := range pod.Spec.Containers {
		resources := &pod.Spec.Containers[i].Resources
		for _, claim := range resources.Claims {
			c.check(seen[claim.Name], "%s: container claim %s is not the Pod's", pod.Name, claim.Name)
		}
		for name := range resources.Requests {
			c.check(name == corev1.ResourceCPU || c.created.extendedResources[name], "%s asks for %s, which no class has", pod.Name, name)
		}
	}
}
