package selection

import (
	"context"
	"time"

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

	// witnesses map templates to a node that each selects, or selected.
	witnesses map[string]string
	// told are the misses that were logged of each template.
	told map[*devices.Template]*Miss
}

// Options are what a Watcher works with. All but Owner and Report are required.
type Options struct {
	Config *config.Store
	// Nodes and Owner are run by the caller.
	Nodes *observe.Nodes
	Owner *shard.Owner
	// Report gets, after each look, why templates select no node, by their names.
	Report func(byTemplate map[string]string)
}

// NewWatcher makes a Watcher; Run starts it.
func NewWatcher(o Options) *Watcher {
	w := &Watcher{
		nodes: o.Nodes, config: o.Config, owner: o.Owner, report: o.Report,
		changed:   make(chan struct{}, 1),
		witnesses: map[string]string{},
		told:      map[*devices.Template]*Miss{},
	}
	o.Nodes.Handle(func(string, *observe.Node, *observe.Node) { w.signal() })
	o.Config.OnChange(w.signal)
	o.Owner.OnChange(func(string) {}, w.signal)
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

// look finds the templates that select no node. Templates of which a node is known
// cost a look at that node.
func (w *Watcher) look(ctx context.Context) {
	set := w.config.Current()
	if set == nil || !w.owner.Leads() {
		return
	}
	search := NewSearch(w.unwitnessed(set.Templates)...)
	if !search.Done() {
		w.lookAtAll(search)
	}
	byTemplate := map[string]string{}
	told := map[*devices.Template]*Miss{}
	for _, t := range set.Templates {
		if miss, was := w.told[t]; was {
			told[t] = miss
		}
	}
	w.told = told
	for _, unselected := range search.Unselected() {
		w.tell(ctx, &unselected)
		if unselected.Miss != nil {
			byTemplate[unselected.Template.Name] = unselected.String()
		}
	}
	if w.report != nil {
		w.report(byTemplate)
	}
}

// unwitnessed are the templates of which no node is known any more.
func (w *Watcher) unwitnessed(templates []*devices.Template) []*devices.Template {
	var all []*devices.Template
	for _, t := range templates {
		if node := w.nodes.Get(w.witnesses[t.Name]); node == nil || !t.Selects(node) {
			delete(w.witnesses, t.Name)
			all = append(all, t)
		}
	}
	return all
}

func (w *Watcher) lookAtAll(search *Search) {
	for _, name := range w.nodes.Names() {
		node := w.nodes.Get(name)
		if node == nil {
			continue
		}
		for _, t := range search.Look(node) {
			w.witnesses[t.Name] = name
		}
		if search.Done() {
			return
		}
	}
}

// tell logs a template that selects no node, and later only what is a nearer miss.
func (w *Watcher) tell(ctx context.Context, u *Unselected) {
	if u.Miss == nil {
		return
	}
	if last, was := w.told[u.Template]; was && !u.Miss.Nearer(last) {
		return
	}
	w.told[u.Template] = u.Miss
	klog.FromContext(ctx).Info("A template selects no node", "template", u.Template.Name, "nodes", u.Nodes, "nearestMiss", u.Miss.String())
}
