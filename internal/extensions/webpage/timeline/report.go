package timeline

import (
	"slices"
	"time"

	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
)

const (
	// maxBuckets bounds the buckets, beside one that has only begun.
	maxBuckets = 60
	// maxListed bounds the changes that are listed one by one.
	maxListed = 200
)

// steps are the lengths of a bucket.
var steps = []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 30 * time.Second, time.Minute}

// Report is what has happened.
type Report struct {
	// Begins is since when all is remembered, and Ends the time of the report. Nothing
	// is remembered before the first inventory.
	Begins time.Time `json:"begins"`
	Ends   time.Time `json:"ends"`
	// Seconds is the length of a bucket, the shortest with which 60 buckets are enough.
	Seconds int      `json:"seconds"`
	Buckets []Bucket `json:"buckets"`
	// Changes are the last ones, the newest first.
	Changes []Change `json:"changes"`
}

// Bucket is a part of the time.
type Bucket struct {
	// From is its beginning, a multiple of its length.
	From time.Time `json:"from"`
	// Changes are how many devices changed, by kind.
	Changes map[Kind]int `json:"changes"`
	// Drivers are the totals at the end of the bucket.
	Drivers []inventory.Driver `json:"drivers"`
}

// Change is that of a device.
type Change struct {
	At     time.Time `json:"at"`
	Kind   Kind      `json:"kind"`
	Node   string    `json:"node,omitempty"`
	Driver string    `json:"driver"`
	Pool   string    `json:"pool"`
	Device string    `json:"device"`
	// Claims are those that have the device after the change, or else before it.
	Claims []string `json:"claims,omitempty"`
}

// Report returns what has happened until now.
func (t *Timeline) Report(now time.Time) *Report {
	report := &Report{Begins: now.UTC(), Ends: now.UTC(), Buckets: []Bucket{}, Changes: []Change{}}
	if !t.Begun() {
		return report
	}
	t.forgetOld(now)
	report.Begins = t.begins.UTC()
	step := stepOf(now.Sub(t.begins))
	report.Seconds = int(step.Seconds())
	totals := totals{}
	for _, driver := range t.drivers {
		totals[driver.Name] = &driver
	}
	p := t.newPast()
	for from := now.Truncate(step); from.Add(step).After(t.begins); from = from.Add(-step) {
		bucket := Bucket{From: from.UTC(), Changes: map[Kind]int{}, Drivers: totals.sortedDrivers()}
		for c := p.nextChange(); c != nil && c.at >= from.UnixMilli(); c = p.nextChange() {
			p.reportChange(totals, func(change Change) {
				bucket.Changes[change.Kind]++
				if len(report.Changes) < maxListed {
					report.Changes = append(report.Changes, change)
				}
			})
		}
		report.Buckets = append(report.Buckets, bucket)
	}
	slices.Reverse(report.Buckets)
	return report
}

// stepOf returns the shortest length of a bucket with which maxBuckets are enough.
func stepOf(all time.Duration) time.Duration {
	for _, step := range steps {
		if all <= maxBuckets*step {
			return step
		}
	}
	return steps[len(steps)-1]
}

// reportChange undoes the next change, also in the totals, and reports what it was.
func (p *past) reportChange(totals totals, found func(Change)) {
	c := p.nextChange()
	at, where := time.UnixMilli(c.at).UTC(), c.place.Value()
	var states [2]inventory.Counts
	before, after := p.undoChange(func(before, after *inventory.Device) {
		device := after
		if after != nil {
			states[1][after.State]++
		}
		if before != nil {
			states[0][before.State]++
			if after == nil || len(after.Claims) == 0 {
				device = before
			}
		}
		if kind := kindOf(before, after); kind != "" {
			found(Change{at, kind, where.node, where.driver, where.pool, device.Name, claimNames(device, true)})
		}
	})
	totals.countAddedPool(where.driver, before)
	totals.removePool(where.driver, after)
	if driver := totals[where.driver]; driver != nil {
		for state := range driver.States {
			driver.States[state] += states[0][state] - states[1][state]
		}
	}
}
