package plan

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
)

// Why slices of drivers in Pods stay as they are, as a kubelet has them stay.
var (
	errDown     = quietError{errors.New("the plugin in the driver Pod is gone, and the kubelet waits for it to come back")}
	errStarting = quietError{errors.New("the driver Pod is not Ready yet")}
	errNotKnown = quietError{errors.New("the driver Pods are not known yet")}
)

// retainUntilStarted retains the slices of a driver with a connection as long as it is unknown what it publishes: its
// Pod has replaced another one and was not Ready yet, or the Pods of another template of the driver are unknown. The
// error is the cause.
func (n *nodePlan) retainUntilStarted(ctx context.Context, d *Desired, templates []*devices.Template) error {
	driver, cause := templates[0].Driver, errStarting
	i := slices.IndexFunc(templates, func(t *devices.Template) bool { return !t.Pod.Ready })
	if i < 0 {
		templates, cause = n.bound.Unknown, errNotKnown
		i = slices.IndexFunc(templates, func(t *devices.Template) bool { return t.Driver == driver })
	}
	existing := n.slicesOf(driver)
	if i < 0 || len(existing) == 0 {
		return nil
	}
	if remains, err := shouldExist(ctx, n.Set, n.object, templates[i:i+1], true); err != nil || !remains {
		return err
	}
	d.Retained[templates[i]] = existing
	return cause
}

// retainLostDrivers retains the slices of drivers that have lost their driver Pods as long as the kubelet does: it
// deletes them 30 s after it has lost the last connection to the driver, unless there is a new one by then.
func (n *nodePlan) retainLostDrivers(ctx context.Context, d *Desired, connected map[string][]*devices.Template) {
	published := map[string]bool{}
	for _, slice := range n.Existing {
		published[slice.Driver] = true
	}
	for _, driver := range slices.Sorted(maps.Keys(published)) {
		isKnown := slices.ContainsFunc(n.previous.pools, func(id facts.PoolID) bool { return id.Driver == driver })
		ranElsewhere := isKnown && !slices.Contains(n.previous.podDrivers, driver)
		// The makers are the templates that may have made the slices of the driver for its Pod.
		makers := slices.DeleteFunc(slices.Clone(n.Set.Templates), func(t *devices.Template) bool {
			return !t.MayBeOf(driver) || t.NamesDriver() && ranElsewhere || !t.Selects(n.Node)
		})
		if len(connected[driver]) > 0 || len(makers) == 0 {
			continue
		}
		switch remains, err := shouldExist(ctx, n.Set, n.object, makers, true); {
		case err != nil:
			d.Suspended[driver] = err
		case remains:
			n.retainLostDriver(d, driver, makers)
		}
	}
}

// retainLostDriver retains the slices of a driver without a connection, unless it has been without one for too long.
func (n *nodePlan) retainLostDriver(d *Desired, driver string, makers []*devices.Template) {
	var failed error
	isUnknown := false
	for _, t := range makers {
		failed = cmp.Or(failed, n.bound.Failed[t])
		isUnknown = isUnknown || slices.Contains(n.bound.Unknown, t)
	}
	// since is when the driver's Pods lost the last connection, or else when the connection was first missed.
	since := n.previous.lostSince[driver]
	if lost := n.bound.Down[driver].Since; lost.After(since) {
		since = lost
	}
	if since.IsZero() || since.After(n.Now) { // the clock behind the Pod's status may be ahead
		since = n.Now
	}
	left := lifecycle.WipeDelay - n.Now.Sub(since)
	switch {
	case failed != nil:
		d.Suspended[driver] = stayUntilSettled(failed)
	case isUnknown:
		d.Suspended[driver] = errNotKnown
	case left > 0 || !n.IsLive:
		d.Suspended[driver] = errDown
		if d.ForNext.lostSince == nil {
			d.ForNext.lostSince = map[string]time.Time{}
		}
		d.ForNext.lostSince[driver] = since
		d.Confirm = d.Confirm || left <= 0
		if left > 0 && (d.Wait == 0 || left < d.Wait) {
			d.Wait = left
		}
	default:
		return
	}
	d.Retained[makers[0]] = append(d.Retained[makers[0]], n.slicesOf(driver)...)
}

func (n *nodePlan) slicesOf(driver string) []*facts.Slice {
	return slices.DeleteFunc(slices.Clone(n.Existing), func(o *facts.Slice) bool { return o.Driver != driver })
}
