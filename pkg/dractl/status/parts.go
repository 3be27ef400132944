package status

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/pkg/inventory"
)

// wholes maps the devices of a pool that are parts of another one to that: of the
// devices that draw on a counter set, the one that takes more of it than any other.
func (w *world) wholes(pool *inventory.Pool) map[string]string {
	sets, drawing := map[string]*resourcev1.CounterSet{}, map[string][]*resourcev1.Device{}
	for _, slice := range w.slices {
		spec := &slice.Spec
		if spec.Driver != pool.Driver || spec.Pool.Name != pool.Name || spec.Pool.Generation != pool.Generation {
			continue
		}
		for i := range spec.SharedCounters {
			sets[spec.SharedCounters[i].Name] = &spec.SharedCounters[i]
		}
		for i := range spec.Devices {
			if consumed := spec.Devices[i].ConsumesCounters; len(consumed) == 1 {
				drawing[consumed[0].CounterSet] = append(drawing[consumed[0].CounterSet], &spec.Devices[i])
			}
		}
	}
	wholes := map[string]string{}
	for name, devices := range drawing {
		if set := sets[name]; set != nil {
			addParts(wholes, set, devices)
		}
	}
	return wholes
}

func addParts(wholes map[string]string, set *resourcev1.CounterSet, devices []*resourcev1.Device) {
	takes := make([]float64, len(devices))
	for i, device := range devices {
		takes[i] = takenOf(set, device.ConsumesCounters[0].Counters)
	}
	most := slices.Max(takes)
	at := slices.Index(takes, most)
	if slices.Contains(takes[at+1:], most) {
		return // none is the whole
	}
	for i, device := range devices {
		if i != at {
			wholes[device.Name] = devices[at].Name
		}
	}
}

// takenOf sums up which part of each counter is consumed.
func takenOf(set *resourcev1.CounterSet, consumed map[string]resourcev1.Counter) float64 {
	sum := 0.0
	for name, counter := range consumed {
		if total := set.Counters[name].Value; total.Sign() > 0 {
			sum += counter.Value.AsApproximateFloat64() / total.AsApproximateFloat64()
		}
	}
	return sum
}
