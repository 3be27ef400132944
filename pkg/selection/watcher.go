package selection

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/pkg/config"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
	"github.com/kwok-dra/kwok-dra/pkg/observe"
	"github.com/kwok-dra/kwok-dra/pkg/shard"
)

const (
	// settle is how long after a change the nodes are looked at: one change is seldom
	// alone.
	settle = time.Second
	// interval is the least time between two looks, and share bounds the time that
	// they take: one part of so many.
	interval = 10 * time.Second
	share    = 100
)

// Watcher says, in the log and to whoever asks, which templates in force select no
// node.
type Watcher struct {
	nodes  *observe.Nodes
	config *config.Store
	owner  *shard.Owner
	report func(byTemplate map[string]string)
	// changed has room for one, so that whoever signals never waits.
	changed chan struct{}

	// told are the misses that were logged of each template.
	told map[*devices.Template]*Miss
}

// NewWatcher makes a Watcher; Run starts it. The nodes and the owner are run by the
// caller. Report gets, after each look, why templates select no node, by their names.
func NewWatcher(store *config.Store, nodes *observe.Nodes, owner *shard.Owner, report func(byTemplate map[string]string)) *Watcher {
	w := &Watcher{
		nodes: nodes, config: store, owner: owner, report: report,
		changed: make(chan struct{}, 1),
		told:    map[*devices.Template]*Miss{},
	}
	nodes.Handle(func(string, *observe.Node, *observe.Node) { w.signal() })
	store.OnChange(w.signal)
	owner.OnChange(func(string) {}, w.signal)
	return w
}

// signal has the nodes looked at soon.
func (w *Watcher) signal() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// Run looks at the nodes when something has changed, until ctx ends. It begins
// when all nodes are known.
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
		if !wait(ctx, settle) {
			return
		}
		start := time.Now()
		w.look(ctx)
		if !wait(ctx, max(interval, share*time.Since(start))) {
			return
		}
	}
}

// wait reports whether the time has passed before ctx ended.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// look finds the templates that select no node. It logs each, and later only what is
// a nearer miss.
func (w *Watcher) look(ctx context.Context) {
	set := w.config.Current()
	if set == nil || !w.owner.Leads() {
		return
	}
	maps.DeleteFunc(w.told, func(t *devices.Template, _ *Miss) bool { return !slices.Contains(set.Templates, t) })
	byTemplate := map[string]string{}
	for _, u := range Of(set.Templates, w.each) {
		if u.Miss == nil {
			continue
		}
		byTemplate[u.Template.Name] = u.String()
		if last := w.told[u.Template]; last == nil || u.Miss.compare(last) < 0 {
			w.told[u.Template] = u.Miss
			klog.FromContext(ctx).Info("A template selects no node", "template", u.Template.Name, "nodes", u.Nodes, "nearestMiss", u.Miss.String())
		}
	}
	w.report(byTemplate)
}

// each yields the fake nodes.
func (w *Watcher) each(yield func(*corev1.Node) bool) {
	for _, name := range w.nodes.Keys() {
		if node := w.nodes.Get(name); node != nil && !yield(node) {
			return
		}
	}
}
