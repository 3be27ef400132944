package timeline

import (
	"fmt"
	"time"
)

// Added is what kwok-dra adds to the way of a Pod that a node is made for.
type Added struct {
	// Publishing is from the node's Ready to its complete pool, and Preparing from
	// the Pod's binding to PodReadyToStartContainers.
	Publishing, Preparing time.Duration
}

// AddedTo says what kwok-dra added for each running Pod, with the pool of one
// driver.
func (t *Timeline) AddedTo(driver string, running func(pod string) bool) ([]Added, error) {
	var all []Added
	for _, prepared := range t.All(PodPrepared) {
		if !running(prepared.Name) {
			continue
		}
		bound, wasBound := t.Find(PodBound, prepared.Name)
		ready, wasReady := t.Find(NodeReady, bound.Detail)
		complete, wasComplete := t.Find(PoolComplete, Pool(bound.Detail, driver))
		if !wasBound || !wasReady || !wasComplete {
			return nil, fmt.Errorf("measure Pod %s: it was prepared on node %q, whose pool of driver %s was not seen", prepared.Name, bound.Detail, driver)
		}
		all = append(all, Added{Publishing: complete.At.Sub(ready.At), Preparing: prepared.At.Sub(bound.At)})
	}
	return all, nil
}

// Publishing is what publishing took, of each.
func Publishing(all []Added) []time.Duration {
	return eachDuration(all, func(a Added) time.Duration { return a.Publishing })
}

// Preparing is what preparing took, of each.
func Preparing(all []Added) []time.Duration {
	return eachDuration(all, func(a Added) time.Duration { return a.Preparing })
}

// Both is what both took together, of each.
func Both(all []Added) []time.Duration {
	return eachDuration(all, func(a Added) time.Duration { return a.Publishing + a.Preparing })
}

func eachDuration(all []Added, of func(Added) time.Duration) []time.Duration {
	durations := make([]time.Duration, len(all))
	for i := range all {
		durations[i] = of(all[i])
	}
	return durations
}
