// Package status writes the status of ResourcePoolTemplates and DRAConfigs that are
// objects in the cluster: whether they are in force, and where they are published.
package status

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/config"
	"github.com/kwok-dra/kwok-dra/pkg/installation"
	"github.com/kwok-dra/kwok-dra/pkg/loop"
	"github.com/kwok-dra/kwok-dra/pkg/resourceslice"
	"github.com/kwok-dra/kwok-dra/pkg/shard"
)

// interval is the least time from one look at all templates to the next. A fleet
// that comes up changes the counts with each node.
const interval = time.Second

// Writer writes the status of objects when it changes, and at no other time.
type Writer struct {
	client dynamic.Interface
	owner  *shard.Owner
	// acceptance returns the existing objects of a kind.
	acceptance func(kind string) map[string]config.Acceptance
	kinds      []config.Kind
	// idle reports whether all outcomes are known, and begun that they once were: until
	// then what is shown is from before a restart, and right.
	idle  func() bool
	begun bool
	// loop has one key, which stands for all objects, and so works on one at a time.
	loop *loop.Loop[struct{}]
	// next is when the next look may begin.
	next time.Time
	// written are the statuses that this Writer has written.
	written map[object]written
	observed
}

// observed is what is known of templates.
type observed struct {
	mu sync.Mutex
	// outcomes maps nodes, and pools that nodes share, to what became of templates
	// there.
	outcomes map[string]map[string]resourceslice.Outcome
	// unselected maps templates that select no node to why.
	unselected map[string]string
}

// plans make the patch that the status of an object of a kind needs, or nil.
var plans = map[string]func(as installation.ID, object config.Acceptance, all totals, now metav1.Time) *patch{
	v1alpha1.ResourcePoolTemplateKind: planTemplate,
	draConfigKind:                     planDRAConfig,
}

// patch is a patch of a status.
type patch struct {
	as      types.PatchType
	options metav1.PatchOptions
	body    map[string]any
	// content is the status without its times.
	content any
	// owner is the installation whose status is shown, or none, and contested says that it
	// is another one.
	owner     installation.ID
	contested bool
}

// object is an object whose status is written.
type object struct {
	kind, name string
	uid        types.UID
}

// written is what was last written of an object.
type written struct {
	content any
	// took is when a status of someone else's was last replaced.
	took time.Time
	// told says that the log has that the status is someone else's.
	told bool
}

// New makes a Writer for the kinds, of which those without a status of ours are
// passed over; Run starts it. It writes where the owner leads, and nothing before idle
// reports once that all outcomes are known.
func New(client dynamic.Interface, owner *shard.Owner, acceptance func(kind string) map[string]config.Acceptance, idle func() bool, kinds ...config.Kind) *Writer {
	w := &Writer{
		client:     client,
		owner:      owner,
		acceptance: acceptance,
		idle:       idle,
		kinds:      slices.DeleteFunc(slices.Clone(kinds), func(kind config.Kind) bool { return plans[kind.Name] == nil }),
		written:    map[object]written{},
		observed:   observed{outcomes: map[string]map[string]resourceslice.Outcome{}},
	}
	w.loop = loop.New("status", w.reconcile)
	owner.OnChange(func(string) {}, w.Changed)
	return w
}

// Outcomes replaces the state of the templates on a node, or of a pool that nodes
// share.
func (w *Writer) Outcomes(of string, templates map[string]resourceslice.Outcome) {
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
	w.loop.Add(struct{}{})
}

// CheckHealth returns an error if the Writer's loop is stuck.
func (w *Writer) CheckHealth() error {
	return w.loop.CheckHealth()
}

// Run writes until ctx ends.
func (w *Writer) Run(ctx context.Context) {
	w.loop.Run(ctx, 1)
}

// reconcile brings the status of every object up to date. One that cannot be
// written is tried again with the next look, and holds up no other.
func (w *Writer) reconcile(ctx context.Context, _ struct{}) error {
	if early := time.Until(w.next); early > 0 {
		w.loop.AddAfter(struct{}{}, early)
		return nil
	}
	w.next = time.Now().Add(interval)
	if !w.owner.Leads() {
		return nil
	}
	idle := w.idle()
	if w.begun = w.begun || idle; !w.begun {
		w.Changed()
		return nil
	}
	existing := map[object]bool{}
	for _, kind := range w.kinds {
		w.sync(ctx, kind, idle, existing)
	}
	maps.DeleteFunc(w.written, func(o object, _ written) bool { return !existing[o] })
	return nil
}

// sync writes the status of the objects of a kind, and adds these to existing. While not all
// nodes have been looked at, it leaves those of which nothing is known yet.
func (w *Writer) sync(ctx context.Context, kind config.Kind, idle bool, existing map[object]bool) {
	objects := w.acceptance(kind.Name)
	all := w.totals(objects)
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		sum, known := all[name]
		o := object{kind.Name, name, objects[name].Source.GetUID()}
		existing[o] = true
		if !idle && !known && objects[name].Err == nil {
			w.Changed()
			continue
		}
		planned := plans[kind.Name](w.owner.Installation(), objects[name], sum, metav1.Now())
		if planned == nil || w.yieldsStatus(ctx, o, planned) {
			continue
		}
		err := w.write(ctx, kind, name, planned)
		if err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
			klog.FromContext(ctx).Error(fmt.Errorf("write status of %s %s: %w", kind.Name, name, err), "Cannot write the status of an object")
			w.Changed()
		}
		if err == nil {
			w.noteWrite(o, planned)
		}
	}
}

// A status that someone else has written is replaced once, and then left alone for a
// while. If the other one lives, it has written it again; if it is gone, the status is not
// out of date for longer.
const (
	// takeInterval is that of the status of another installation.
	takeInterval = time.Hour
	// repairInterval is that of one that is recorded to this installation: a replica that
	// led before, a person, or a version before records has changed it.
	repairInterval = 10 * time.Minute
)

// isContested reports whether a write replaces what someone else has written: the status
// of another installation, or what was there in place of the same status before.
func (w *Writer) isContested(o object, planned *patch) bool {
	return planned.contested || apiequality.Semantic.DeepEqual(w.written[o].content, planned.content)
}

// yieldsStatus reports whether a status is left to someone else for now.
func (w *Writer) yieldsStatus(ctx context.Context, o object, planned *patch) bool {
	last, interval := w.written[o], repairInterval
	if planned.contested {
		interval = takeInterval
	}
	wait := interval - time.Since(last.took)
	if wait <= 0 || !w.isContested(o, planned) {
		return false
	}
	if !last.told {
		klog.FromContext(ctx).Info("Skipped the status of an object that someone else writes too; look for another kwok-dra", "kind", o.kind, "name", o.name, "installation", planned.owner)
		last.told = true
		w.written[o] = last
	}
	w.loop.AddAfter(struct{}{}, wait)
	return true
}

// noteWrite notes that a status was written.
func (w *Writer) noteWrite(o object, planned *patch) {
	last := w.written[o]
	if w.isContested(o, planned) {
		last.took = time.Now()
	}
	last.content = planned.content
	w.written[o] = last
}

// write writes a status. One that is applied gives way to who has written one meanwhile.
func (w *Writer) write(ctx context.Context, kind config.Kind, name string, p *patch) error {
	body, err := json.Marshal(p.body)
	if err == nil {
		_, err = w.client.Resource(kind.Resource).Patch(ctx, name, p.as, body, p.options, "status")
	}
	if p.as == types.ApplyPatchType && apierrors.IsConflict(err) {
		klog.FromContext(ctx).Info("Left the status of a DRAConfig to who writes it", "draConfig", name, "err", err)
		return nil
	}
	return err
}

// totals adds up the state of each object's templates.
func (o *observed) totals(objects map[string]config.Acceptance) map[string]totals {
	owners := map[string]string{}
	for name, object := range objects {
		for _, template := range object.Templates {
			owners[template] = name
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	all := map[string]totals{}
	for _, of := range slices.Sorted(maps.Keys(o.outcomes)) {
		for name, here := range together(o.outcomes[of], owners) {
			all[name] = all[name].plus(of, here)
		}
	}
	for _, template := range slices.Sorted(maps.Keys(o.unselected)) {
		if name, owned := owners[template]; owned {
			sum := all[name]
			sum.unselected = cmp.Or(sum.unselected, o.unselected[template])
			all[name] = sum
		}
	}
	return all
}

// together makes one outcome of those of each object's templates in one place.
func together(outcomes map[string]resourceslice.Outcome, owners map[string]string) map[string]resourceslice.Outcome {
	all := map[string]resourceslice.Outcome{}
	for _, template := range slices.Sorted(maps.Keys(outcomes)) {
		if name, owned := owners[template]; owned {
			sum, outcome := all[name], outcomes[template]
			sum.Slices += outcome.Slices
			sum.Devices += outcome.Devices
			sum.HiddenBy = cmp.Or(sum.HiddenBy, outcome.HiddenBy)
			sum.Problem = cmp.Or(sum.Problem, outcome.Problem)
			all[name] = sum
		}
	}
	return all
}
