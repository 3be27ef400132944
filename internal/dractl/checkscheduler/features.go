package checkscheduler

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/kwok-dra/kwok-dra/internal/dractl/checkscheduler/story"
)

// feature is a part of DRA that a scheduler may lack.
type feature struct {
	name string
	// has reports whether stories have it, and leaveOut keeps it from them.
	has      func(f *story.Features) bool
	leaveOut func(f *story.Features)
	// statements are those that only stories with the feature can violate.
	statements []string
}

// features are all, in the order in which they are listed.
var features = []feature{
	newFeature("admin-access", func(f *story.Features) *bool { return &f.AdminAccess }, "admin-namespace", "admin-requested"),
	newFeature("binding-conditions", func(f *story.Features) *bool { return &f.BindingConditions }, "binding-conditions-copied", "bound-after-conditions"),
	newFeature("consumable-capacity", func(f *story.Features) *bool { return &f.ConsumableCapacity },
		"share-ids", "capacity-offered", "capacity-consumed", "capacity-total", "distinct-attribute"),
	{
		name:       "device-taints",
		has:        func(f *story.Features) bool { return f.DeviceTaints },
		leaveOut:   func(f *story.Features) { f.DeviceTaints, f.TaintRuleVersion = false, "" },
		statements: []string{"taints-tolerated", "tolerations-copied"},
	},
	newFeature("extended-resources", func(f *story.Features) *bool { return &f.ExtendedResources }, "extended-resources"),
	newFeature("partitionable-devices", func(f *story.Features) *bool { return &f.PartitionableDevices }, "counters-total"),
	newFeature("pod-groups", func(f *story.Features) *bool { return &f.PodGroups }),
	newFeature("prioritized-list", func(f *story.Features) *bool { return &f.PrioritizedList }, "first-available-one"),
}

// newFeature makes a feature that is one field of those of stories.
func newFeature(name string, field func(f *story.Features) *bool, statements ...string) feature {
	return feature{
		name:       name,
		has:        func(f *story.Features) bool { return *field(f) },
		leaveOut:   func(f *story.Features) { *field(f) = false },
		statements: statements,
	}
}

// FeatureNames lists the features as --without has them.
func FeatureNames() []string {
	var names []string
	for i := range features {
		names = append(names, features[i].name)
	}
	return names
}

// addSkipped says of statements why no story can violate them, unless another reason is known: stories lack a feature.
func addSkipped(skipped map[string]string, f *story.Features, why string) {
	for i := range features {
		if features[i].has(f) {
			continue
		}
		for _, id := range features[i].statements {
			skipped[id] = cmp.Or(skipped[id], why)
		}
	}
}

// leaveOutFeatures keeps features from stories.
func leaveOutFeatures(f *story.Features, names []string) error {
	for _, name := range names {
		isKnown := false
		for i := range features {
			if features[i].name == name {
				features[i].leaveOut(f)
				isKnown = true
			}
		}
		if !isKnown {
			return fmt.Errorf("parse --without %q: must be of %s", name, strings.Join(FeatureNames(), ", "))
		}
	}
	return nil
}
