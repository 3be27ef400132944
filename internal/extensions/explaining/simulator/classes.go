package simulator

import (
	"context"

	resourcev1 "k8s.io/api/resource/v1"
)

// EmptyClass is a class that selects no device.
type EmptyClass struct {
	Name string
	// Left is how many devices are left after each selector, in their order.
	Left []Selected
	// Failure is why a selector fails for a device, if it does.
	Failure string
}

// Selected is how many devices a selector leaves of those that the selectors before it have left.
type Selected struct {
	Expression string
	Devices    int
}

// FindEmptyClasses returns the classes that select none of the published devices. A class without selectors selects
// all.
func FindEmptyClasses(ctx context.Context, all []*resourcev1.DeviceClass, slices []*resourcev1.ResourceSlice) []EmptyClass {
	m := newMatcher(nil)
	var empty []EmptyClass
	for _, class := range all {
		selectors := appendSelectors(nil, "class "+class.Name, class.Spec.Selectors)
		found := EmptyClass{Name: class.Name, Left: make([]Selected, len(selectors))}
		for i := range selectors {
			found.Left[i].Expression = selectors[i].expression
		}
		if len(selectors) > 0 && !m.selectsAny(ctx, &found, selectors, slices) {
			empty = append(empty, found)
		}
	}
	return empty
}

// selectsAny reports whether a device matches all selectors, and counts how far the others get until then.
func (m *matcher) selectsAny(ctx context.Context, class *EmptyClass, selectors []selector, slices []*resourcev1.ResourceSlice) bool {
	for _, slice := range slices {
		for i := range slice.Spec.Devices {
			passed := 0
			for ; passed < len(selectors); passed++ {
				matches, err := m.matchesSelector(ctx, slice.Spec.Driver, &slice.Spec.Devices[i], selectors[passed])
				if err != nil && class.Failure == "" {
					class.Failure = err.Error()
				}
				if !matches {
					break
				}
				class.Left[passed].Devices++
			}
			if passed == len(selectors) {
				return true
			}
		}
	}
	return false
}
