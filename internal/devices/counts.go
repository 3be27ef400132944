package devices

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/internal/devices/gotemplate"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// counts compiles a template anew for the numbers of devices that its driver Pods give.
type counts struct {
	// source is the template as it is written.
	source *v1alpha1.ResourcePoolTemplate
	// texts are those of all countFrom, devices first.
	texts []gotemplate.Text

	mu sync.Mutex
	// compiled are templates by their numbers, and devices is how many these have together.
	compiled map[string]*Template
	devices  int
}

// maxSizes is how many sizes of a template are kept, with at most twice the devices of the largest
// one. The releases of a chart have a few.
const maxSizes = 64

// newCounts checks the fields countFrom of a template. It returns nil for a template without any.
func newCounts(source *v1alpha1.ResourcePoolTemplate, path *field.Path) (*counts, field.ErrorList) {
	c := &counts{source: source, compiled: map[string]*Template{}}
	var errs field.ErrorList
	visitCounts(&source.Spec, path, func(count *int32, from string, at *field.Path) *int32 {
		text := gotemplate.Text{Path: at.Child("countFrom"), Source: from}
		switch {
		case source.Spec.DriverPod == nil:
			errs = append(errs, field.Forbidden(text.Path, "needs driverPod, whose Pod it reads; use count"))
		case count != nil:
			errs = append(errs, field.Forbidden(text.Path, "count is there already: remove one of the two"))
		default:
			errs = append(errs, text.Check(map[string]any{"DriverPod": samplePod})...)
		}
		c.texts = append(c.texts, text)
		return count
	})
	if len(c.texts) == 0 {
		return nil, nil
	}
	return c, errs
}

// visitCounts visits the groups of devices and counter sets with countFrom, in an order that is
// always the same, and sets their counts.
func visitCounts(spec *v1alpha1.ResourcePoolTemplateSpec, path *field.Path, visit func(count *int32, from string, at *field.Path) *int32) {
	for i := range spec.Devices {
		if d := &spec.Devices[i]; d.CountFrom != "" {
			d.Count = visit(d.Count, d.CountFrom, path.Child("devices").Index(i))
		}
	}
	for i := range spec.SharedCounters {
		if s := &spec.SharedCounters[i]; s.CountFrom != "" {
			s.Count = visit(s.Count, s.CountFrom, path.Child("sharedCounters").Index(i))
		}
	}
}

// templateOf returns the source with these counts. It has no groups of zero, and none of their names
// in spec.slices.
func (c *counts) templateOf(numbers []int32) *v1alpha1.ResourcePoolTemplate {
	made := c.source.DeepCopy()
	spec := &made.Spec
	number := 0
	visitCounts(spec, nil, func(*int32, string, *field.Path) *int32 {
		number++
		return new(numbers[number-1])
	})
	devices, sets := spec.Devices, spec.SharedCounters
	spec.Devices, spec.SharedCounters = nil, nil
	isRemoved := func(string) bool { return false }
	for _, d := range devices {
		if d.CountFrom = ""; d.Count == nil || *d.Count != 0 {
			spec.Devices = append(spec.Devices, d)
			continue
		}
		before, numbered := isRemoved, regexp.MustCompile("^"+regexp.QuoteMeta(d.Name)+`(-\d+)?$`)
		isRemoved = func(name string) bool { return before(name) || numbered.MatchString(name) }
	}
	for i := range spec.Slices {
		spec.Slices[i].Devices = slices.DeleteFunc(spec.Slices[i].Devices, isRemoved)
	}
	spec.Slices = slices.DeleteFunc(spec.Slices, func(s v1alpha1.SliceTemplate) bool { return len(s.Devices) == 0 })
	for _, s := range sets {
		if s.CountFrom = ""; s.Count == nil || *s.Count != 0 {
			spec.SharedCounters = append(spec.SharedCounters, s)
		}
	}
	return made
}

// sampleTemplate has one of everything.
func (c *counts) sampleTemplate() *v1alpha1.ResourcePoolTemplate {
	numbers := make([]int32, len(c.texts))
	for i := range numbers {
		numbers[i] = 1
	}
	return c.templateOf(numbers)
}

// compileFor compiles the template t with the counts that a driver Pod gives.
func (c *counts) compileFor(t *Template, pod *BoundPod) (*Template, error) {
	renderer := gotemplate.Renderer{Texts: len(c.texts), Shared: []gotemplate.Shared{{Name: "Node"}, {Name: "DriverPod", Get: pod.Data}}}
	numbers := make([]int32, len(c.texts))
	for i := range c.texts {
		text, err := renderer.Render(&c.texts[i], nil)
		if err != nil {
			return nil, err
		}
		number, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32)
		if err != nil || number < 0 {
			return nil, field.Invalid(c.texts[i].Path, text, "must yield a number of devices, 0 to 10,000")
		}
		numbers[i] = int32(number)
	}
	return c.compileSize(t, numbers)
}

// compileSize compiles the template t with these counts, once.
func (c *counts) compileSize(t *Template, numbers []int32) (*Template, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := fmt.Sprint(numbers)
	if known := c.compiled[key]; known != nil {
		return known, nil
	}
	source := c.templateOf(numbers)
	isEmpty := len(source.Spec.Devices) == 0
	if isEmpty {
		source = c.sampleTemplate()
	}
	compiled, errs := Compile(source)
	if err := errs.ToAggregate(); err != nil {
		return nil, err
	}
	if isEmpty {
		compiled.content = poolContent{uid: compiled.content.uid, poolName: compiled.content.poolName, labels: compiled.content.labels}
	}
	compiled.Origin = t.Origin
	if len(c.compiled) >= maxSizes || c.devices > maxTemplateDevices {
		clear(c.compiled)
		c.devices = 0
	}
	c.compiled[key] = compiled
	c.devices += compiled.Size()
	return compiled, nil
}
