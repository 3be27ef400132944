package driverpods

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/devices/gotemplate"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/api/validation"
)

func init() { devices.RegisterPodBinder(newBinding) }

// binding is what a driver Pod decides of a template.
type binding struct {
	// driver is the name of the driver, and counts is nil where no driver Pod says how many devices
	// there are.
	driver gotemplate.Text
	counts *counts
}

// newBinding checks and compiles what driver Pods decide of a template. The sample has one of everything.
func newBinding(source *v1alpha1.ResourcePoolTemplate, path *field.Path) (sample *v1alpha1.ResourcePoolTemplate, bind devices.BindPod, errs field.ErrorList) {
	b := &binding{driver: gotemplate.Text{Path: path.Child("driver"), Source: source.Spec.Driver}}
	b.counts, errs = newCounts(source, path)
	if source.Spec.DriverPod != nil {
		errs = append(errs, b.driver.Check(map[string]any{"DriverPod": devices.SamplePod})...)
	}
	if b.counts != nil {
		source = b.counts.sample
	}
	return source, b.bindTo, errs
}

// bindTo copies a template with driverPod for one Pod: the copy has the name and the number of devices
// that the Pod gives, and is rendered with the Pod.
func (b *binding) bindTo(t *devices.Template, pod devices.BoundPod) (*devices.Template, error) {
	sized := t
	shared := []gotemplate.Shared{{Name: "Node"}, {Name: "DriverPod", Get: pod.Data}}
	if c := b.counts; c != nil {
		renderer := gotemplate.Renderer{Texts: len(c.texts), Shared: shared}
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
		var err error
		if sized, err = c.compileSize(t, numbers); err != nil {
			return nil, err
		}
	}
	bound, spec := *sized, *sized.ResourcePoolTemplateSpec
	bound.Pod, bound.ResourcePoolTemplateSpec = pod, &spec
	driver, err := (&gotemplate.Renderer{Texts: 1, Shared: shared}).Render(&b.driver, nil)
	if err != nil {
		return nil, err
	}
	if strings.Contains(driver, gotemplate.NoValue) {
		return nil, devices.MissingField(&b.driver)
	}
	if errs := validation.ValidateDriver(driver, b.driver.Path); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	spec.Driver = driver
	return &bound, nil
}
