package driverpods

import (
	"fmt"
	"regexp"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/devices/gotemplate"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// counts compiles a template anew for the numbers of devices that its driver Pods give.
type counts struct {
	// source is the template as it is written, and sample has one of everything.
	source, sample *v1alpha1.ResourcePoolTemplate
	// texts are those of all countFrom, devices first.
	texts []gotemplate.Text

	mu sync.Mutex
	// compiled are templates by their numbers, and devices is how many these have together.
	compiled map[string]*devices.Template
	devices  int
}

// maxSizes is how many sizes of a template are kept, with at most twice the devices of the largest
// one. The releases of a chart have a few.
const maxSizes = 64

// newCounts checks the fields countFrom of a template. It returns nil for a template without any.
func newCounts(source *v1alpha1.ResourcePoolTemplate, path *field.Path) (*counts, field.ErrorList) {
	c := &counts{source: source, compiled: map[string]*devices.Template{}}
	var errs field.ErrorList
	visitCounts(&source.Spec, path, func(count **int32, from *string, at *field.Path) {
		text := gotemplate.Text{Path: at.Child("countFrom"), Source: *from}
		switch {
		case source.Spec.DriverPod == nil:
			errs = append(errs, field.Forbidden(text.Path, "needs driverPod, whose Pod it reads; use count"))
		case *count != nil:
			errs = append(errs, field.Forbidden(text.Path, "count is there already: remove one of the two"))
		default:
			errs = append(errs, text.Check(map[string]any{"DriverPod": devices.SamplePod})...)
		}
		c.texts = append(c.texts, text)
	})
	if len(c.texts) == 0 {
		return nil, nil
	}
	c.sample = c.templateOf(slices.Repeat([]int32{1}, len(c.texts)))
	return c, errs
}

// visitCounts visits the groups of devices and counter sets with countFrom, in an order that is
// always the same.
func visitCounts(spec *v1alpha1.ResourcePoolTemplateSpec, path *field.Path, visit func(count **int32, from *string, at *field.Path)) {
	for i := range spec.Devices {
		if d := &spec.Devices[i]; d.CountFrom != "" {
			visit(&d.Count, &d.CountFrom, path.Child("devices").Index(i))
		}
	}
	for i := range spec.SharedCounters {
		if s := &spec.SharedCounters[i]; s.CountFrom != "" {
			visit(&s.Count, &s.CountFrom, path.Child("sharedCounters").Index(i))
		}
	}
}

// templateOf returns the source with these counts. It has no groups of zero, and none of their names
// in spec.slices.
func (c *counts) templateOf(numbers []int32) *v1alpha1.ResourcePoolTemplate {
	made := c.source.DeepCopy()
	spec := &made.Spec
	visitCounts(spec, nil, func(count **int32, from *string, _ *field.Path) {
		*count, *from = new(numbers[0]), ""
		numbers = numbers[1:]
	})
	isEmpty := func(count *int32) bool { return count != nil && *count == 0 }
	for _, d := range spec.Devices {
		if !isEmpty(d.Count) {
			continue
		}
		numbered := regexp.MustCompile("^" + regexp.QuoteMeta(d.Name) + `(-\d+)?$`)
		for i := range spec.Slices {
			spec.Slices[i].Devices = slices.DeleteFunc(spec.Slices[i].Devices, numbered.MatchString)
		}
	}
	spec.Slices = slices.DeleteFunc(spec.Slices, func(s v1alpha1.SliceTemplate) bool { return len(s.Devices) == 0 })
	spec.Devices = slices.DeleteFunc(spec.Devices, func(d v1alpha1.DeviceTemplate) bool { return isEmpty(d.Count) })
	spec.SharedCounters = slices.DeleteFunc(spec.SharedCounters, func(s v1alpha1.CounterSetTemplate) bool { return isEmpty(s.Count) })
	return made
}

// compileSize compiles the template t with these counts, once.
func (c *counts) compileSize(t *devices.Template, numbers []int32) (*devices.Template, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := fmt.Sprint(numbers)
	if known := c.compiled[key]; known != nil {
		return known, nil
	}
	source := c.templateOf(numbers)
	isEmpty := len(source.Spec.Devices) == 0
	if isEmpty {
		source = c.sample
	}
	compiled, errs := devices.Compile(source)
	if err := errs.ToAggregate(); err != nil {
		return nil, err
	}
	if isEmpty {
		compiled = compiled.WithoutDevices()
	}
	compiled.Origin = t.Origin
	if len(c.compiled) >= maxSizes || c.devices > devices.MaxTemplateDevices {
		clear(c.compiled)
		c.devices = 0
	}
	c.compiled[key] = compiled
	c.devices += compiled.Size()
	return compiled, nil
}
