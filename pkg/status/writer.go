// Package status writes the status of ResourcePoolTemplates and DRAConfigs that are
// objects in the cluster: whether they are in force, and where they are published.
package status

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/pkg/config"
	"github.com/kwok-dra/kwok-dra/pkg/shard"
	publishing "github.com/kwok-dra/kwok-dra/pkg/slices"
)

// interval is the least time between two looks at all templates. A fleet that
// comes up changes the counts with each node.
const interval = time.Second

// Writer writes the status of objects when it changes, and at no other time.
type Writer struct {
	client dynamic.Interface
	owner  *shard.Owner
	// acceptance returns the existing objects of a kind.
	acceptance func(kind string) map[string]config.Acceptance
	forms      []form
	// changed has room for one, so that a sender never waits.
	changed chan struct{}

	mu sync.Mutex
	// outcomes maps nodes, and pools that nodes share, to what became of templates
	// there.
	outcomes map[string]map[string]publishing.Outcome
	// unselected maps templates that select no node to why.
	unselected map[string]string
}

// form is how a kind shows the state of its objects.
type form struct {
	kind config.Kind
	// plan makes the write that the status of an object needs, or nil.
	plan func(object config.Acceptance, all totals, now metav1.Time) write
}

// write writes a status, as far as the API server lets it.
type write func(ctx context.Context, client dynamic.ResourceInterface, name string) error

// New makes a Writer for the kinds, of which those without a status of ours are
// passed over; Run starts it. It writes where the owner leads.
func New(client dynamic.Interface, owner *shard.Owner, acceptance func(kind string) map[string]config.Acceptance, kinds ...config.Kind) *Writer {
	w := &Writer{
		client:     client,
		owner:      owner,
		acceptance: acceptance,
		forms:      formsOf(kinds),
		changed:    make(chan struct{}, 1),
		outcomes:   map[string]map[string]publishing.Outcome{},
	}
	owner.OnChange(func(string) {}, w.Changed)
	return w
}

// Outcomes replaces the state of the templates on a node, or of a pool that nodes
// share.
func (w *Writer) Outcomes(of string, templates map[string]publishing.Outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(templates) == 0 {
		delete(w.outcomes, of)
	} else {
		w.outcomes[of] = templates
	}
	w.Changed()
}

// Unselected takes why templates select no node, by their names, in place of what
// was known.
func (w *Writer) Unselected(byTemplate map[string]string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !maps.Equal(w.unselected, byTemplate) {
		w.unselected = byTemplate
		w.Changed()
	}
}

// Changed has the objects looked at soon.
func (w *Writer) Changed() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// Run writes until ctx ends.
func (w *Writer) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.changed:
		}
		w.write(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(interval):
		}
	}
}

// write brings the status of every object up to date. One that cannot be written
// is tried again.
func (w *Writer) write(ctx context.Context) {
	if !w.owner.Leads() {
		return
	}
	for _, form := range w.forms {
		objects := w.acceptance(form.kind.Name)
		all := w.totals(objects)
		client := w.client.Resource(form.kind.Resource)
		for _, name := range slices.Sorted(maps.Keys(objects)) {
			write := form.plan(objects[name], all[name], metav1.Now())
			if write == nil {
				continue
			}
			err := write(ctx, client, name)
			if err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
				klog.FromContext(ctx).Error(fmt.Errorf("write status of %s %s: %w", form.kind.Name, name, err), "Cannot write the status of an object")
				w.Changed()
			}
		}
	}
}

// totals adds up the state of each object's templates.
func (w *Writer) totals(objects map[string]config.Acceptance) map[string]totals {
	owners := map[string]string{}
	for name, object := range objects {
		for _, template := range object.Templates {
			owners[template] = name
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	all := map[string]totals{}
	for _, of := range slices.Sorted(maps.Keys(w.outcomes)) {
		for name, here := range together(w.outcomes[of], owners) {
			all[name] = all[name].plus(of, here)
		}
	}
	for _, template := range slices.Sorted(maps.Keys(w.unselected)) {
		if name, owned := owners[template]; owned {
			sum := all[name]
			sum.unselected = cmp.Or(sum.unselected, w.unselected[template])
			all[name] = sum
		}
	}
	return all
}

// together makes one outcome of those of each object's templates in one place.
func together(outcomes map[string]publishing.Outcome, owners map[string]string) map[string]publishing.Outcome {
	all := map[string]publishing.Outcome{}
	for _, template := range slices.Sorted(maps.Keys(outcomes)) {
		name, owned := owners[template]
		if !owned {
			continue
		}
		sum, outcome := all[name], outcomes[template]
		sum.Slices += outcome.Slices
		sum.Devices += outcome.Devices
		sum.HiddenBy = cmp.Or(sum.HiddenBy, outcome.HiddenBy)
		if sum.Problem == nil {
			sum.Problem = outcome.Problem
		}
		all[name] = sum
	}
	return all
}
