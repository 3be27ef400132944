package plan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kwok-dra/kwok-dra/pkg/devices"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/observe/facts"
)

// kept is why the slices of a driver stay as they are. It is nobody's mistake: the plugin
// is gone and may come back, or one starts.
type kept struct{ error }

var (
	errDown     = kept{errors.New("the plugin in the driver Pod is gone, and the kubelet waits for it to come back")}
	errStarting = kept{errors.New("the driver Pod is not Ready yet")}
	errNotKnown = kept{errors.New("the driver Pods are not known yet")}
)

// waiting keeps the slices of a driver that has a connection, as long as what it publishes
// is not known: its Pod has taken over from another one and has not been Ready, or a second
// template of it has Pods that are not known.
func (s *nodeState) waiting(ctx context.Context, d *Desired, templates []*devices.Template) error {
	driver, cause := templates[0].Driver, errStarting
	i := slices.IndexFunc(templates, func(t *devices.Template) bool { return !t.Started() })
	if i < 0 {
		templates, cause = s.bound.Unknown, errNotKnown
		i = slices.IndexFunc(templates, func(t *devices.Template) bool { return t.Driver == driver })
	}
	slices := s.slicesOf(driver)
	if i < 0 || len(slices) == 0 {
		return nil
	}
	if retire, err := retired(ctx, s.Set, s.object, templates[i:i+1]); err != nil || retire {
		return err
	}
	d.Kept[templates[i]] = slices
	return cause
}

// holdDown keeps the slices of drivers that have lost their driver Pods, as long as the
// kubelet does. It deletes them 30 s after it has lost the last connection to the driver,
// unless it has a new one by then.
func (s *nodeState) holdDown(ctx context.Context, d *Desired, up map[string][]*devices.Template) {
	drivers := map[string]bool{}
	for _, o := range s.Existing {
		drivers[o.Driver] = true
	}
	for _, driver := range slices.Sorted(maps.Keys(drivers)) {
		owners := s.owners(driver)
		if len(up[driver]) > 0 || len(owners) == 0 {
			continue
		}
		switch retire, err := retired(ctx, s.Set, s.object, owners); {
		case err != nil:
			d.Held[driver] = err
		case !retire:
			s.hold(d, driver, owners)
		}
	}
}

// owners are the templates that may have made the slices of a driver, for a driver Pod.
func (s *nodeState) owners(driver string) []*devices.Template {
	known := slices.ContainsFunc(s.known.pools, func(id facts.PoolID) bool { return id.Driver == driver })
	others := known && !slices.Contains(s.known.played, driver)
	return slices.DeleteFunc(slices.Clone(s.Set.Templates), func(t *devices.Template) bool {
		return !t.MayBeOf(driver) || t.NamesDriver() && others || !t.Selects(s.Node)
	})
}

// played are the drivers that run in Pods, and those that did and still have slices.
func (s *nodeState) played() []string {
	var drivers []string
	for _, t := range s.bound.Templates {
		if t.DriverPod != nil {
			drivers = append(drivers, t.Driver)
		}
	}
	for _, driver := range s.known.played {
		if !slices.Contains(drivers, driver) && len(s.slicesOf(driver)) > 0 {
			drivers = append(drivers, driver)
		}
	}
	return drivers
}

// hold keeps the slices of a driver that is down, unless it is for too long.
func (s *nodeState) hold(d *Desired, driver string, owners []*devices.Template) {
	since := s.lostSince(driver)
	left := lifecycle.WipeDelay - s.Now.Sub(since)
	unknown, failed := s.unsure(owners)
	switch {
	case failed != nil:
		d.Held[driver] = kept{fmt.Errorf("slices stay as they are until this is settled: %w", failed)}
	case unknown:
		d.Held[driver] = errNotKnown
	case left > 0 || !s.Live:
		d.Held[driver] = errDown
	default:
		return
	}
	if failed == nil && !unknown {
		d.note(driver, since)
		d.Confirm = d.Confirm || left <= 0
		if left > 0 && (d.Wait == 0 || left < d.Wait) {
			d.Wait = left
		}
	}
	d.Kept[owners[0]] = append(d.Kept[owners[0]], s.slicesOf(driver)...)
}

// unsure is why it is not known whether the driver of some templates runs in a Pod.
func (s *nodeState) unsure(owners []*devices.Template) (unknown bool, failed error) {
	for _, t := range owners {
		if err := s.bound.Failed[t]; err != nil && failed == nil {
			failed = err
		}
		unknown = unknown || slices.Contains(s.bound.Unknown, t)
	}
	return unknown, failed
}

// lostSince is when the last connection to a driver was lost. Its Pods say so, or else it is
// when the connection was first missed.
func (s *nodeState) lostSince(driver string) time.Time {
	since := s.known.lost[driver]
	if lost := s.bound.Down[driver].Since; lost.After(since) {
		since = lost
	}
	if since.IsZero() || since.After(s.Now) { // the clock that the Pod's status has may be ahead
		return s.Now
	}
	return since
}

// note remembers since when a driver is down.
func (d *Desired) note(driver string, since time.Time) {
	if d.Known.lost == nil {
		d.Known.lost = map[string]time.Time{}
	}
	d.Known.lost[driver] = since
}

func (s *nodeState) slicesOf(driver string) []*facts.Slice {
	return slices.DeleteFunc(slices.Clone(s.Existing), func(o *facts.Slice) bool { return o.Driver != driver })
}
