// Package ambiguous warns of values that devices have under two names.
package ambiguous

import (
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/util/strict"
)

// ambiguousNames returns the names that exist both with and without the driver's domain. CEL takes
// the two for one, and which of the values it sees is chance.
func ambiguousNames[V any](driver string, values ...map[resourcev1.QualifiedName]V) []resourcev1.QualifiedName {
	all := map[resourcev1.QualifiedName]bool{}
	for _, one := range values {
		for name := range one {
			all[name] = true
		}
	}
	var names []resourcev1.QualifiedName
	for name := range all {
		if !strings.Contains(string(name), "/") && all[resourcev1.QualifiedName(driver)+"/"+name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// ambiguity is the format of a warning, for the driver and the name.
const ambiguity = "also there as %s/%s, and CEL takes both for one: which value it sees is chance; leave one out"

// InTemplate warns of attributes and capacities that devices of the template have both with and
// without the driver's domain.
func InTemplate(t *devices.Template) strict.Problems {
	var warnings strict.Problems
	warn := func(path *field.Path, names []resourcev1.QualifiedName) {
		for _, name := range names {
			warnings = append(warnings, strict.Problem{Path: path.Key(string(name)).String(), Text: fmt.Sprintf(ambiguity, t.Driver, name)})
		}
	}
	for i := range t.Devices {
		d, path := &t.Devices[i], field.NewPath("spec", "devices").Index(i)
		names := ambiguousNames(t.Driver, d.Attributes)
		warn(path.Child("attributes"), names)
		warn(path.Child("capacity"), ambiguousNames(t.Driver, d.Capacity))
		for j := range d.Partitions {
			inherited := ambiguousNames(t.Driver, d.Attributes, d.Partitions[j].Attributes)
			warn(path.Child("partitions").Index(j).Child("attributes"), slices.DeleteFunc(inherited, func(name resourcev1.QualifiedName) bool {
				return slices.Contains(names, name)
			}))
		}
	}
	return warnings
}

// InSlices returns such warnings of the devices in slices, one for each driver and name.
func InSlices(published []*resourcev1.ResourceSlice) []string {
	type found struct {
		driver string
		name   resourcev1.QualifiedName
	}
	counts := map[found]int{}
	for _, slice := range published {
		for i := range slice.Spec.Devices {
			device := &slice.Spec.Devices[i]
			for _, name := range slices.Concat(ambiguousNames(slice.Spec.Driver, device.Attributes), ambiguousNames(slice.Spec.Driver, device.Capacity)) {
				counts[found{slice.Spec.Driver, name}]++
			}
		}
	}
	var warnings []string
	for one, count := range counts {
		of := fmt.Sprintf("%d devices", count)
		if count == 1 {
			of = "1 device"
		}
		warnings = append(warnings, fmt.Sprintf("%s of %s of driver %s: "+ambiguity, one.name, of, one.driver, one.driver, one.name))
	}
	slices.Sort(warnings)
	return warnings
}
