package timeline

import (
	"fmt"
	"slices"
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

// Percentile is the duration that a share of all is not longer than.
func Percentile(share float64, all []Added, of func(Added) time.Duration) time.Duration {
	durations := make([]time.Duration, len(all))
	for i, one := range all {
		durations[i] = of(one)
	}
	slices.Sort(durations)
	return durations[min(len(durations)-1, int(share*float64(len(durations))))]
}

// Publishing, Preparing and Both are for Percentile.
func Publishing(a Added) time.Duration { return a.Publishing }

// Preparing is from binding to prepared.
func Preparing(a Added) time.Duration { return a.Preparing }

// Both is all that is added.
func Both(a Added) time.Duration { return a.Publishing + a.Preparing }
