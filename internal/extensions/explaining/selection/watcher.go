package selection

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/controller/shard"
	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/observe"
)

const (
	// settlePeriod is how long after a change the templates are checked: one change seldom comes
	// alone.
	settlePeriod = time.Second
	// minCheckInterval is the least time between two checks. The pause after a check is
	// pausePerCheck times as long as the check.
	minCheckInterval = 10 * time.Second
	pausePerCheck    = 100
)

// Watcher reports which templates in force select no node, in the log and to a function.
type Watcher struct {
	nodes  *observe.Nodes
	config *config.Store
	owner  *shard.Owner
	report func(byTemplate map[string]string)
	// changed has room for one signal, so that signalChange never waits.
	changed chan struct{}

	// logged has the last miss that was logged of each template.
	logged map[*devices.Template]*Miss
}

// NewWatcher makes a Watcher; Run starts it. The caller runs the nodes and the owner. After each check,
// report gets why templates select no node, by their names.
func NewWatcher(store *config.Store, nodes *observe.Nodes, owner *shard.Owner, report func(byTemplate map[string]string)) *Watcher {
	w := &Watcher{
		nodes: nodes, config: store, owner: owner, report: report,
		changed: make(chan struct{}, 1),
		logged:  map[*devices.Template]*Miss{},
	}
	nodes.Handle(func(string, *observe.Node, *observe.Node) { w.signalChange() })
	store.OnChange(w.signalChange)
	owner.OnChange(func(string) {}, w.signalChange)
	return w
}

// signalChange makes Run check the templates soon.
func (w *Watcher) signalChange() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// Run checks the templates when something has changed, until ctx ends. It starts once the nodes are
// synced.
func (w *Watcher) Run(ctx context.Context) {
	if !cache.WaitFor(ctx, "", w.nodes.Synced()...) {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.changed:
		}
		if !waitFor(ctx, settlePeriod) {
			return
		}
		start := time.Now()
		w.checkTemplates(ctx)
		if !waitFor(ctx, max(minCheckInterval, pausePerCheck*time.Since(start))) {
			return
		}
	}
}

// waitFor waits, and is false if ctx ends before the time has passed.
func waitFor(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// checkTemplates reports the templates that select no node. It logs each, and again only for a nearer
// miss.
func (w *Watcher) checkTemplates(ctx context.Context) {
	set := w.config.Current()
	if set == nil || !w.owner.Leads() {
		return
	}
	maps.DeleteFunc(w.logged, func(t *devices.Template, _ *Miss) bool { return !slices.Contains(set.Templates, t) })
	byTemplate := map[string]string{}
	for _, u := range Of(set.Templates, w.fakeNodes) {
		if u.Miss == nil {
			continue
		}
		byTemplate[u.Template.Name] = u.String()
		if last := w.logged[u.Template]; last == nil || u.Miss.compareDistance(last) < 0 {
			w.logged[u.Template] = u.Miss
			klog.FromContext(ctx).Info("A template selects no node", "template", u.Template.Name, "nodes", u.Nodes, "nearestMiss", u.Miss.String())
		}
	}
	w.report(byTemplate)
}

// fakeNodes yields all fake nodes.
func (w *Watcher) fakeNodes(yield func(*corev1.Node) bool) {
	for _, name := range w.nodes.Keys() {
		if node := w.nodes.Get(name); node != nil && !yield(node) {
			return
		}
	}
}
