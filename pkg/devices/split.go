package devices

import (
	"fmt"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// split resolves which device is in which slice, where the template says so.
// Each device must be in exactly one.
func (e *expansion) split(slices []v1alpha1.SliceTemplate, path *field.Path) {
	if len(slices) == 0 {
		return
	}
	placed := taken{}
	for i := range slices {
		var members []string
		for j, name := range slices[i].Devices {
			at := path.Index(i).Child("devices").Index(j)
			names, errs := e.resolve(name, at)
			e.errs = append(append(e.errs, errs...), placed.add(names, at)...)
			members = append(members, names...)
		}
		e.errs = append(e.errs, e.fits(members, path.Index(i).Child("devices"))...)
		e.template.pool.split = append(e.template.pool.split, members)
	}
	var missing []string
	for _, at := range e.template.order {
		name := e.template.device(at).Name
		if placed[name] == nil {
			missing = append(missing, name)
		}
	}
	if len(e.errs) == 0 && len(missing) > 0 {
		e.errs = append(e.errs, field.Required(path, fmt.Sprintf("every device must be in a slice, and %s is in none; add it, or leave slices out", listed(missing))))
	}
}

// fits refuses a slice of more devices than the API server accepts. Rendering may
// find further problems.
func (e *expansion) fits(members []string, path *field.Path) field.ErrorList {
	in := map[string]bool{}
	for _, name := range members {
		in[name] = true
	}
	var list []resourcev1.Device
	for _, g := range e.template.groups {
		for i := range g.devices {
			if in[g.devices[i].Name] {
				list = append(list, g.devices[i])
			}
		}
	}
	limit := maxDevices(list)
	if len(list) <= limit {
		return nil
	}
	why := ""
	if limit < resourcev1.ResourceSliceMaxDevices {
		why = ", since some have taints, lists or consumesCounters"
	}
	return field.ErrorList{field.Invalid(path, len(list), fmt.Sprintf("must be at most %d devices%s: make more slices", limit, why))}
}

// resolve finds the devices that a name in slices stands for.
func (e *expansion) resolve(name string, path *field.Path) ([]string, field.ErrorList) {
	if names, isGroup := e.groups[name]; isGroup {
		return names, nil
	}
	if e.devices[name] != nil {
		return []string{name}, nil
	}
	return nil, field.ErrorList{field.Invalid(path, name, "there is no device or group of that name in the template")}
}

// listed lists the first few of many names.
func listed(names []string) string {
	const most = 3
	switch {
	case len(names) == 0:
		return "none"
	case len(names) > most:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
