package devices

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// counts make templates whose driver Pods say how many devices there are.
type counts struct {
	// source is the template as it is written.
	source *v1alpha1.ResourcePoolTemplate
	// places are those of all countFrom, devices first.
	places []place

	mu sync.Mutex
	// made are templates by their counts, which have that many devices together.
	made    map[string]*Template
	devices int
}

// maxSizes is how many sizes of a template are kept, which have at most twice the devices of
// the largest. The releases of a chart have a few.
const maxSizes = 64

// newCounts reads the counts that the driver Pods of a template give. It is nil where there
// are none.
func newCounts(source *v1alpha1.ResourcePoolTemplate, path *field.Path) (*counts, field.ErrorList) {
	c := &counts{source: source, made: map[string]*Template{}}
	var errs field.ErrorList
	eachCount(&source.Spec, path, func(count *int32, from string, at *field.Path) *int32 {
		p := place{path: at.Child("countFrom"), value: from}
		switch {
		case source.Spec.DriverPod == nil:
			errs = append(errs, field.Forbidden(p.path, "needs driverPod, whose Pod it reads; use count"))
		case count != nil:
			errs = append(errs, field.Forbidden(p.path, "count is there already: remove one of the two"))
		default:
			errs = append(errs, p.check(map[string]any{"DriverPod": samplePod})...)
		}
		c.places = append(c.places, p)
		return count
	})
	if len(c.places) == 0 {
		return nil, nil
	}
	return c, errs
}

// eachCount goes through the groups of devices and counter sets with countFrom, always in
// the same order, and sets their counts.
func eachCount(spec *v1alpha1.ResourcePoolTemplateSpec, path *field.Path, each func(count *int32, from string, at *field.Path) *int32) {
	for i := range spec.Devices {
		if d := &spec.Devices[i]; d.CountFrom != "" {
			d.Count = each(d.Count, d.CountFrom, path.Child("devices").Index(i))
		}
	}
	for i := range spec.SharedCounters {
		if s := &spec.SharedCounters[i]; s.CountFrom != "" {
			s.Count = each(s.Count, s.CountFrom, path.Child("sharedCounters").Index(i))
		}
	}
}

// with is the source with these counts, without groups of none and what spec.slices says
// of them.
func (c *counts) with(numbers []int32) *v1alpha1.ResourcePoolTemplate {
	made := c.source.DeepCopy()
	spec := &made.Spec
	number := 0
	eachCount(spec, nil, func(*int32, string, *field.Path) *int32 {
		number++
		return new(numbers[number-1])
	})
	devices, sets := spec.Devices, spec.SharedCounters
	spec.Devices, spec.SharedCounters = nil, nil
	left := func(string) bool { return false }
	for _, d := range devices {
		if d.CountFrom = ""; d.Count == nil || *d.Count != 0 {
			spec.Devices = append(spec.Devices, d)
			continue
		}
		before, numbered := left, regexp.MustCompile("^"+regexp.QuoteMeta(d.Name)+`(-\d+)?$`)
		left = func(name string) bool { return before(name) || numbered.MatchString(name) }
	}
	for i := range spec.Slices {
		spec.Slices[i].Devices = slices.DeleteFunc(spec.Slices[i].Devices, left)
	}
	spec.Slices = slices.DeleteFunc(spec.Slices, func(s v1alpha1.SliceTemplate) bool { return len(s.Devices) == 0 })
	for _, s := range sets {
		if s.CountFrom = ""; s.Count == nil || *s.Count != 0 {
			spec.SharedCounters = append(spec.SharedCounters, s)
		}
	}
	return made
}

// sample has one of everything.
func (c *counts) sample() *v1alpha1.ResourcePoolTemplate {
	numbers := make([]int32, len(c.places))
	for i := range numbers {
		numbers[i] = 1
	}
	return c.with(numbers)
}

// sized is the template, of which these are the counts, with those that a driver Pod gives.
func (c *counts) sized(t *Template, podData func() (any, error)) (*Template, error) {
	if c == nil {
		return t, nil
	}
	r := newRendering(len(c.places))
	r.pod = podData
	numbers := make([]int32, len(c.places))
	for i := range numbers {
		number, err := c.places[i].count(r)
		if err != nil {
			return nil, err
		}
		numbers[i] = number
	}
	return c.make(t, numbers)
}

func (p *place) count(r *rendering) (int32, error) {
	text, err := p.text(r, map[string]any{})
	if err != nil {
		return 0, err
	}
	number, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32)
	if err != nil || number < 0 {
		return 0, field.Invalid(p.path, text, "must yield a number of devices, 0 to 10,000")
	}
	return int32(number), nil
}

// make makes the template of a size, once.
func (c *counts) make(t *Template, numbers []int32) (*Template, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := fmt.Sprint(numbers)
	if known := c.made[key]; known != nil {
		return known, nil
	}
	sized := c.with(numbers)
	none := len(sized.Spec.Devices) == 0
	if none {
		sized = c.sample()
	}
	made, errs := Compile(sized)
	if err := errs.ToAggregate(); err != nil {
		return nil, err
	}
	if none {
		made.groups, made.devices, made.byName, made.split, made.counterSets = nil, nil, nil, nil, nil
	}
	made.Origin = t.Origin
	if len(c.made) >= maxSizes || c.devices > maxTemplateDevices {
		clear(c.made)
		c.devices = 0
	}
	c.made[key] = made
	c.devices += made.Size()
	return made, nil
}
