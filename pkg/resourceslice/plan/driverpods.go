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
)

// kept is why a driver's slices stay as they are, which is nobody's mistake: its plugin
// is gone, and the kubelet waits for it to come back, or one starts.
type kept struct{ error }

var (
	errDown     = kept{errors.New("the plugin in the driver Pod is gone, and the kubelet waits for it to come back")}
	errStarting = kept{errors.New("the driver Pod is not Ready yet")}
	errNotKnown = kept{errors.New("the driver Pods are not known yet")}
)

// starting keeps the slices of a driver whose Pod has taken over from another one and
// has published nothing yet.
func (s *nodeState) starting(ctx context.Context, d *Desired, templates []*devices.Template) error {
	i := slices.IndexFunc(templates, func(t *devices.Template) bool { return !t.Started() })
	if i < 0 {
		return nil
	}
	slices := s.slicesOf(templates[i].Driver)
	if retire, err := retired(ctx, s.Set, s.object, templates); err != nil || retire || len(slices) == 0 {
		return err
	}
	d.Kept[templates[i]] = slices
	return errStarting
}

// holdDown keeps the slices of drivers that only Pods play which are gone, as long as the
// kubelet does: it deletes them 30 s after it has lost the last connection, unless it has
// one again.
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

// owners are the templates that may have made the slices of a driver for a driver Pod.
func (s *nodeState) owners(driver string) []*devices.Template {
	known := slices.ContainsFunc(s.known.pools, func(id PoolID) bool { return id.Driver == driver })
	others := known && !slices.Contains(s.known.played, driver)
	return slices.DeleteFunc(slices.Clone(s.Set.Templates), func(t *devices.Template) bool {
		return !t.MayBeOf(driver) || t.NamesDriver() && others || !t.Selects(s.Node)
	})
}

// played are the drivers that Pods have played so far, and that have slices or may come
// to have some.
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

// hold keeps the slices of a driver that is down, unless it has been for too long.
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

// unsure is why it is not known whether a Pod plays the driver of some of the templates.
func (s *nodeState) unsure(owners []*devices.Template) (unknown bool, failed error) {
	for _, t := range owners {
		if err := s.bound.Failed[t]; err != nil && failed == nil {
			failed = err
		}
		unknown = unknown || slices.Contains(s.bound.Unknown, t)
	}
	return unknown, failed
}

// lostSince is when the last connection to a driver was lost: what its Pods say, or when
// it was first seen that there is none.
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

func (s *nodeState) slicesOf(driver string) []*Observed {
	return slices.DeleteFunc(slices.Clone(s.Existing), func(o *Observed) bool { return o.Driver != driver })
}
