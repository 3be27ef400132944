package devices

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// Limits of what templates make in all: the API limits only each of their parts. A node has some
// dozen devices, with partitions some hundred; pools that nodes share have thousands.
const (
	// maxTemplateDevices is how many devices a template makes, those of partitions too, and how
	// many counter sets.
	maxTemplateDevices = 10_000
	// maxTotal is how many devices all templates make together, and how many counter sets: at
	// most so many are on a single node.
	maxTotal = 100_000
)

// Total counts what templates make together.
type Total struct{ devices, counterSets int }

// Add adds what a template makes.
func (t *Total) Add(template *Template) {
	t.devices += len(template.content.devices)
	t.counterSets += len(template.content.counterSets)
}

// Excess says why templates that make so much are refused. It is empty if they are not.
func (t *Total) Excess() string {
	number, of := t.devices, "devices"
	if t.counterSets > maxTotal {
		number, of = t.counterSets, "counter sets"
	}
	if number <= maxTotal {
		return ""
	}
	return fmt.Sprintf("all templates together may make at most %d %s, and make %d: lower count, or remove templates", maxTotal, of, number)
}

// checkSize refuses a template that makes too much, before it makes anything.
func checkSize(spec *v1alpha1.ResourcePoolTemplateSpec, path *field.Path) (errs field.ErrorList) {
	devices, sets := 0, 0
	for i := range spec.Devices {
		d := &spec.Devices[i]
		number, each := countOf(d.Count), 1
		for j := range d.Partitions {
			each += d.Partitions[j].Number()
		}
		devices += number * each
		if len(d.Counters) > 0 || d.Slots != nil {
			sets += number
		}
	}
	for i := range spec.SharedCounters {
		sets += countOf(spec.SharedCounters[i].Count)
	}
	if devices > maxTemplateDevices {
		errs = append(errs, field.Invalid(path.Child("devices"), devices, fmt.Sprintf("a template may make at most %d devices, with those of partitions: lower count, or make several templates", maxTemplateDevices)))
	}
	if sets > maxTemplateDevices {
		errs = append(errs, field.Invalid(path.Child("sharedCounters"), sets, fmt.Sprintf("a template may make at most %d counter sets, with one for each device with counters or slots: lower count", maxTemplateDevices)))
	}
	return errs
}

func countOf(count *int32) int {
	if count == nil {
		return 1
	}
	return int(*count)
}
