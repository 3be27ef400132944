package story

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
)

// everything is what Kubernetes 1.36 or later has with all gates on.
var everything = Features{
	AdminAccess: true, PrioritizedList: true, PartitionableDevices: true, ConsumableCapacity: true, DeviceTaints: true,
	TaintRuleVersion: "v1", BindingConditions: true, ExtendedResources: true, PodGroups: true, Quotas: true,
}

func TestStoriesAreWellFormed(t *testing.T) {
	t.Parallel()
	older := everything
	older.CountersWithDevices = true
	for seed := range int64(2000) {
		for i, f := range []Features{everything, older, {}} {
			if i > 0 && seed%5 > 0 {
				continue
			}
			s := New("story", seed, f)
			requireWellFormed(t, s)
			pods := 0
			for i := range s.Steps {
				for _, object := range s.Steps[i].Create {
					if refTo(object).Kind == "Pod" {
						pods++
					}
				}
			}
			require.LessOrEqual(t, len(s.Steps), 13, "seed %d", seed)
			require.GreaterOrEqual(t, len(s.Steps), 3, "seed %d", seed)
			require.LessOrEqual(t, pods, maxPods+2, "seed %d", seed)
			require.Positive(t, pods, "seed %d", seed)
		}
	}
}

func TestSameSeedSameStory(t *testing.T) {
	t.Parallel()
	for seed := range int64(50) {
		first, again := New("story", seed, everything), New("story", seed, everything)
		require.Equal(t, first, again)
	}
	require.NotEqual(t, New("story", 1, everything).Steps, New("story", 2, everything).Steps)
}

func TestYAML(t *testing.T) {
	t.Parallel()
	for seed := range int64(200) {
		s := New("story", seed, everything)
		var written, again bytes.Buffer
		require.NoError(t, s.WriteYAML(&written))
		read, err := Read(written.Bytes())
		require.NoError(t, err, "seed %d", seed)
		require.NoError(t, read.WriteYAML(&again))
		require.Equal(t, written.String(), again.String())
		require.NotContains(t, written.String(), "null")
		require.Equal(t, s.Parts(), read.Parts())
	}
	_, err := Read([]byte("steps: [{create: [{kind: Secret}]}]"))
	require.ErrorContains(t, err, `kind "Secret"`)
	_, err = Read([]byte("steps: [{create: [{kind: Pod, spec: {containerz: []}}]}]"))
	require.ErrorContains(t, err, "containerz")
}

func TestWithoutStaysWellFormed(t *testing.T) {
	t.Parallel()
	for seed := range int64(300) {
		s := New("story", seed, everything)
		parts := s.Parts()
		require.Greater(t, parts, 20)
		random := rand.New(rand.NewPCG(uint64(seed), 7))
		for range 10 {
			leftOut := random.Perm(parts)[:random.IntN(parts+1)]
			smaller := s.Without(leftOut)
			requireWellFormed(t, smaller)
			require.LessOrEqual(t, smaller.Parts(), parts-len(leftOut)+1, "seed %d", seed)
		}
		require.Equal(t, s.Parts(), parts, "the story itself stays as it is")
		requireWellFormed(t, s)
	}
}

// TestWithoutNothing leaves a story as it is, but for what it does in vain.
func TestWithoutNothing(t *testing.T) {
	t.Parallel()
	for seed := range int64(300) {
		s := New("story", seed, everything)
		require.Equal(t, textOf(t, s), textOf(t, s.Without(nil)), "seed %d", seed)
	}
}

func textOf(t *testing.T, s *Story) string {
	t.Helper()
	var text bytes.Buffer
	require.NoError(t, s.WriteYAML(&text))
	return text.String()
}

// TestWithoutEachPart proves that each part alone makes a story smaller, so that shrinking goes on while it can.
func TestWithoutEachPart(t *testing.T) {
	t.Parallel()
	for seed := range int64(10) {
		s := New("story", seed, everything)
		for part := range s.Parts() {
			smaller := s.Without([]int{part})
			require.Less(t, smaller.Parts(), s.Parts(), "seed %d, part %d", seed, part)
		}
	}
}

// TestTraits proves that the stories of few seeds have everything that they are to have, and nothing that the cluster
// does not have.
func TestTraits(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for seed := range int64(200) {
		for trait := range traitsOf(New("story", seed, everything)) {
			seen[trait]++
		}
	}
	for _, trait := range slices.Sorted(maps.Keys(needs)) {
		require.Positive(t, seen[trait], "no story has %s: %v", trait, seen)
	}
	for trait := range seen {
		require.Contains(t, needs, trait)
	}
	for trait, without := range needs {
		if without == nil {
			continue
		}
		f := everything
		without(&f)
		for seed := range int64(500) {
			require.NotContains(t, traitsOf(New("story", seed, f)), trait, "seed %d", seed)
		}
	}
}

// needs are all traits, and what takes away what they need.
var needs = map[string]func(*Features){
	"several drivers": nil, "several slices": nil, "incomplete pool": nil, "node-attached pool": nil, "network-attached pool": nil,
	"pool of a zone": nil, "selector": nil, "class selector": nil, "all": nil, "count": nil, "match": nil, "match across drivers": nil, "several requests": nil,
	"shared claim": nil, "claim of containers": nil, "template": nil, "Pod with two claims": nil, "config": nil,
	"Pod ends": nil, "Pod is deleted": nil, "Pod terminates": nil, "Pod comes back": nil, "preemption": nil, "drain": nil, "node goes": nil, "node is used again": nil,
	"slice changes": nil, "slice goes": nil, "pool grows": nil, "class changes": nil, "claim comes late": nil, "claim is deleted": nil, "rests": nil,
	"node taint": nil, "old generation stays": nil, "all of an incomplete pool": nil,
	"counters": func(f *Features) { f.PartitionableDevices = false }, "nodes of devices": func(f *Features) { f.PartitionableDevices = false },
	"shared capacity": func(f *Features) { f.ConsumableCapacity = false }, "request policy": func(f *Features) { f.ConsumableCapacity = false },
	"capacity": func(f *Features) { f.ConsumableCapacity = false }, "distinct": func(f *Features) { f.ConsumableCapacity = false },
	"taint": func(f *Features) { f.DeviceTaints = false; f.TaintRuleVersion = "" }, "toleration": func(f *Features) { f.DeviceTaints = false; f.TaintRuleVersion = "" },
	"taint rule":         func(f *Features) { f.TaintRuleVersion = "" },
	"firstAvailable":     func(f *Features) { f.PrioritizedList = false },
	"admin access":       func(f *Features) { f.AdminAccess = false },
	"binding conditions": func(f *Features) { f.BindingConditions = false }, "drivers answer": func(f *Features) { f.BindingConditions = false },
	"drivers refuse": func(f *Features) { f.BindingConditions = false },
	"Pod group":      func(f *Features) { f.PodGroups = false }, "claim of a Pod group": func(f *Features) { f.PodGroups = false },
	"extended resource": func(f *Features) { f.ExtendedResources = false },
	"quota":             func(f *Features) { f.Quotas = false },
}

// traits collects what a story has.
type traits map[string]bool

func (t traits) add(trait string, has bool) {
	if has {
		t[trait] = true
	}
}

func traitsOf(s *Story) traits {
	t := traits{}
	drivers, users, created := map[string]bool{}, map[string]int{}, map[Ref]bool{}
	missing := missingSlices(s)
	for i := range s.Steps {
		step := &s.Steps[i]
		for _, object := range step.Create {
			ref := refTo(object)
			t.add("Pod comes back", ref.Kind == "Pod" && created[ref])
			created[ref] = true
			t.addObject(object, i)
			switch object := object.(type) {
			case *resourcev1.ResourceSlice:
				drivers[object.Spec.Driver] = true
				t.add("incomplete pool", missing[generationOf(object)] > 0)
			case *corev1.Pod:
				for _, claim := range object.Spec.ResourceClaims {
					if claim.ResourceClaimName != nil {
						users[*claim.ResourceClaimName]++
						t.add("claim comes late", !created[Ref{resourceVersion, "ResourceClaim", *claim.ResourceClaimName}])
					}
				}
			}
		}
		t.addChanges(step)
		t.add("drain", len(step.Drain) > 0)
		t.add("drivers answer", step.Answer != "")
		t.add("drivers refuse", step.Answer == Failed && hasKind(step.Create, "Pod"))
		t.add("rests", step.Rest && i < len(s.Steps)-1)
	}
	t.add("old generation stays", leavesOldGeneration(s))
	t.add("all of an incomplete pool", wantsIncompletePool(s))
	t.add("several drivers", len(drivers) > 1)
	for _, count := range users {
		t.add("shared claim", count > 1)
	}
	return t
}

// wantsIncompletePool reports whether a Pod comes for all devices of a driver right after it has begun to publish a pool with
// a slice more.
func wantsIncompletePool(s *Story) bool {
	for i := 1; i < len(s.Steps); i++ {
		for _, object := range s.Steps[i-1].Replace {
			slice, isSlice := object.(*resourcev1.ResourceSlice)
			if isSlice && s.Steps[i-1].Rest && int64(len(s.Steps[i-1].Replace)) < slice.Spec.Pool.ResourceSliceCount && asksForAll(&s.Steps[i], slice.Spec.Driver) {
				return true
			}
		}
	}
	return false
}

// asksForAll reports whether a step makes a template of a claim for all devices of a driver.
func asksForAll(step *Step, driver string) bool {
	kind, _, _ := strings.Cut(driver, ".")
	return slices.ContainsFunc(step.Create, func(object Object) bool {
		template, isTemplate := object.(*resourcev1.ResourceClaimTemplate)
		if !isTemplate {
			return false
		}
		request := template.Spec.Spec.Devices.Requests[0].Exactly
		return request != nil && request.AllocationMode == resourcev1.DeviceAllocationModeAll && strings.HasSuffix(request.DeviceClassName, "-"+kind)
	})
}

// leavesOldGeneration reports whether Pods come when a pool has slices of two generations that have no device in common.
func leavesOldGeneration(s *Story) bool {
	published := map[string]*resourcev1.ResourceSlice{}
	hasOld := false
	for i := range s.Steps {
		step := &s.Steps[i]
		if hasOld && hasKind(step.Create, "Pod") {
			return true
		}
		for _, object := range slices.Concat(step.Create, step.Replace) {
			if slice, isSlice := object.(*resourcev1.ResourceSlice); isSlice {
				published[slice.Name] = slice
			}
		}
		for _, deletion := range step.Delete {
			delete(published, deletion.Name)
		}
		for _, old := range published {
			for _, slice := range published {
				hasOld = hasOld || poolOf(old) == poolOf(slice) && old.Spec.Pool.Generation < slice.Spec.Pool.Generation && !haveCommonDevice(old, slice)
			}
		}
	}
	return false
}

func poolOf(slice *resourcev1.ResourceSlice) [2]string {
	return [2]string{slice.Spec.Driver, slice.Spec.Pool.Name}
}

func haveCommonDevice(a, b *resourcev1.ResourceSlice) bool {
	return slices.ContainsFunc(a.Spec.Devices, func(d resourcev1.Device) bool {
		return slices.ContainsFunc(b.Spec.Devices, func(other resourcev1.Device) bool { return other.Name == d.Name })
	})
}

func (t traits) addChanges(step *Step) {
	for _, object := range step.Replace {
		t.add("slice changes", refTo(object).Kind == "ResourceSlice")
		t.add("class changes", refTo(object).Kind == "DeviceClass")
	}
	for _, patch := range step.Patch {
		t.add("Pod ends", patch.Kind == "Pod" && patch.Subresource == "status")
		t.add("node is used again", patch.Kind == "Node")
	}
	for _, deletion := range step.Delete {
		t.add("Pod is deleted", deletion.Kind == "Pod")
		t.add("Pod terminates", deletion.IsGraceful)
		t.add("node goes", deletion.Kind == "Node")
		t.add("slice goes", deletion.Kind == "ResourceSlice")
		t.add("claim is deleted", deletion.Kind == "ResourceClaim")
	}
}

func (t traits) addObject(object Object, step int) {
	switch object := object.(type) {
	case *resourcev1.ResourceSlice:
		t.addSlice(&object.Spec)
		t.add("pool grows", step > 0)
	case *resourcev1.DeviceClass:
		t.add("class selector", len(object.Spec.Selectors) > 1)
	case *resourcev1.DeviceTaintRule:
		t.add("taint rule", true)
	case *resourcev1.ResourceClaim:
		t.addClaim(&object.Spec.Devices)
	case *resourcev1.ResourceClaimTemplate:
		t.add("template", true)
		t.addClaim(&object.Spec.Spec.Devices)
	case *corev1.Node:
		t.add("node taint", len(object.Spec.Taints) > 0)
	case *schedulingv1beta1.PodGroup:
		t.add("Pod group", true)
		t.add("claim of a Pod group", len(object.Spec.ResourceClaims) > 0)
	case *corev1.ResourceQuota:
		t.add("quota", true)
	case *corev1.Pod:
		t.add("preemption", object.Spec.PriorityClassName != "")
		t.add("Pod with two claims", len(object.Spec.ResourceClaims) > 1)
		uses := map[string]int{}
		for i := range object.Spec.Containers {
			t.add("extended resource", len(object.Spec.Containers[i].Resources.Limits) > 0)
			for _, claim := range object.Spec.Containers[i].Resources.Claims {
				uses[claim.Name]++
				t.add("claim of containers", uses[claim.Name] > 1)
			}
		}
	}
}

func (t traits) addSlice(spec *resourcev1.ResourceSliceSpec) {
	t.add("several slices", spec.Pool.ResourceSliceCount > 2)
	t.add("node-attached pool", spec.NodeName != nil)
	t.add("network-attached pool", spec.AllNodes != nil)
	t.add("pool of a zone", spec.NodeSelector != nil)
	t.add("nodes of devices", spec.PerDeviceNodeSelection != nil)
	t.add("counters", len(spec.SharedCounters) > 0)
	for i := range spec.Devices {
		device := &spec.Devices[i]
		t.add("taint", len(device.Taints) > 0)
		t.add("shared capacity", device.AllowMultipleAllocations != nil)
		t.add("binding conditions", len(device.BindingConditions) > 0)
		t.add("counters", len(device.ConsumesCounters) > 0)
		for _, capacity := range device.Capacity {
			t.add("request policy", capacity.RequestPolicy != nil)
		}
	}
}

func (t traits) addClaim(spec *resourcev1.DeviceClaim) {
	t.add("several requests", len(spec.Requests) > 1)
	t.add("config", len(spec.Config) > 0)
	for _, constraint := range spec.Constraints {
		t.add("distinct", constraint.DistinctAttribute != nil)
		t.add("match", constraint.MatchAttribute != nil)
		t.add("match across drivers", len(spec.Requests) > 1 && constraint.MatchAttribute != nil && strings.HasPrefix(string(*constraint.MatchAttribute), domain))
	}
	for i := range spec.Requests {
		t.add("firstAvailable", len(spec.Requests[i].FirstAvailable) > 0)
		if request := spec.Requests[i].Exactly; request != nil {
			t.add("all", request.AllocationMode == resourcev1.DeviceAllocationModeAll)
			t.add("count", request.Count > 1)
			t.add("selector", len(request.Selectors) > 0)
			t.add("admin access", request.AdminAccess != nil)
			t.add("toleration", len(request.Tolerations) > 0)
			t.add("capacity", request.Capacity != nil)
		}
	}
}
