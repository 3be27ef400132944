package driverpods

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/observe"
	"github.com/kwok-dra/kwok-dra/internal/observe/cached"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// Pods are the Pods that the templates in force select by driverPod. Each selector has a watch of its
// own, so that without such a template nothing is watched.
type Pods struct {
	client kubernetes.Interface
	config *config.Store
	// changed signals a new configuration. It has room for one signal, so that no sender waits.
	changed chan struct{}
	// onNode and onAll are called when driver Pods of one node, or of any node, have changed.
	onNode []func(node string)
	onAll  []func()
	// drivers has the names of drivers that have run in Pods, or have slices.
	drivers sync.Map

	mu      sync.Mutex
	watches map[Selector]*podWatch
}

// byNode indexes driver Pods by their nodes.
const byNode = "node"

// New follows the templates in force, and reads from slices which drivers ran before. Call it before
// anything else follows the store, and before the caches run.
func New(client kubernetes.Interface, store *config.Store, published *observe.Slices) *Pods {
	d := &Pods{client: client, config: store, changed: make(chan struct{}, 1), watches: map[Selector]*podWatch{}}
	published.Handle(cache.TypedResourceEventHandlerFuncs[*facts.Slice]{
		AddFunc: func(slice *facts.Slice) { d.drivers.LoadOrStore(slice.Driver, true) },
	})
	store.NameDrivers(func(driver string) bool {
		_, hasRun := d.drivers.Load(driver)
		return hasRun
	})
	store.OnChange(func() {
		select {
		case d.changed <- struct{}{}:
		default:
		}
	})
	return d
}

// Handle calls node with the name of each node whose driver Pods have changed, and all
// when those of any node may have. Call it before Run.
func (d *Pods) Handle(node func(name string), all func()) {
	d.onNode, d.onAll = append(d.onNode, node), append(d.onAll, all)
}

// Run watches until ctx ends.
func (d *Pods) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for {
		for _, w := range d.updateWatches(ctx) {
			running.Go(func() { w.runUntilDone(w.ctx) })
		}
		select {
		case <-ctx.Done():
			return
		case <-d.changed:
		}
	}
}

// updateWatches stops the watches of selectors that no template has any more, and returns new ones for
// the caller to run.
func (d *Pods) updateWatches(ctx context.Context) (added []*podWatch) {
	d.mu.Lock()
	defer d.mu.Unlock()
	wanted := map[Selector][]*devices.Template{}
	var current []*devices.Template
	if set := d.config.Current(); set != nil {
		current = set.Templates
	}
	for _, t := range current {
		if selector, ok := SelectorOf(t); ok {
			wanted[selector] = append(wanted[selector], t)
		}
	}
	for selector, w := range d.watches {
		if wanted[selector] == nil {
			w.cancel()
			delete(d.watches, selector)
		}
	}
	for selector, templates := range wanted {
		w := d.watches[selector]
		if w == nil {
			w = newPodWatch(ctx, d, selector)
			d.watches[selector] = w
			added = append(added, w)
		}
		w.templates.Store(&templates)
		if slices.ContainsFunc(templates, (*devices.Template).NamesDriver) {
			for pod := range w.All() {
				w.recordDrivers(pod)
			}
		}
	}
	return added
}

// On implements devices.Presence.
func (d *Pods) On(node string) devices.Pods { return d.ListCached(node).BindTemplate }

// ListCached lists the driver Pods on a node, from the cache.
func (d *Pods) ListCached(node string) Listed {
	return func(t *devices.Template) ([]*Pod, bool) {
		selector, _ := SelectorOf(t)
		d.mu.Lock()
		w := d.watches[selector]
		d.mu.Unlock()
		if w == nil || !w.synced.Load() {
			return nil, false
		}
		return w.By(byNode, node), true
	}
}

// Live implements devices.Presence.
func (d *Pods) Live(ctx context.Context, templates []*devices.Template, node *corev1.Node) (devices.Pods, error) {
	selecting := slices.DeleteFunc(slices.Clone(templates), func(t *devices.Template) bool { return !t.Selects(node) })
	on, err := ListPods(selecting, func(selector Selector) ([]corev1.Pod, error) {
		list, err := d.client.CoreV1().Pods(selector.Namespace).List(ctx, metav1.ListOptions{
			LabelSelector: selector.Labels, FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node.Name).String(),
		})
		if err != nil {
			return nil, fmt.Errorf("on node %s: %w", node.Name, err)
		}
		return list.Items, nil
	})
	if err != nil {
		return nil, err
	}
	return on(node.Name).BindTemplate, nil
}

var driverPodsDesc = prometheus.NewDesc("kwok_dra_driver_pods",
	"Pods in which the plugin of a driver runs, by the template whose driverPod selects them. A template that has none publishes nothing.", []string{"template"}, nil)

// Describe implements prometheus.Collector.
func (d *Pods) Describe(ch chan<- *prometheus.Desc) { ch <- driverPodsDesc }

// Collect implements prometheus.Collector. It reports templates whose Pods are known.
func (d *Pods) Collect(ch chan<- prometheus.Metric) {
	d.mu.Lock()
	watches := slices.Collect(maps.Values(d.watches))
	d.mu.Unlock() // counting takes long, and On needs the lock
	for _, w := range watches {
		if !w.synced.Load() {
			continue
		}
		for _, t := range *w.templates.Load() {
			count := 0
			for pod := range w.All() {
				if pod.Connected && wantsPod(t, pod, pod.dataForTemplates) {
					count++
				}
			}
			ch <- prometheus.MustNewConstMetric(driverPodsDesc, prometheus.GaugeValue, float64(count), t.Name)
		}
	}
}

// podWatch watches the Pods of one selector.
type podWatch struct {
	cached.Informer[*Pod]

	pods      *Pods
	ctx       context.Context
	cancel    context.CancelFunc
	templates atomic.Pointer[[]*devices.Template]
	synced    atomic.Bool
}

func newPodWatch(ctx context.Context, pods *Pods, selector Selector) *podWatch {
	w := &podWatch{pods: pods}
	w.ctx, w.cancel = context.WithCancel(ctx)
	indexers := cache.TypedIndexersToIndexers(cache.TypedIndexers[*Pod]{
		byNode: func(pod *Pod) ([]string, error) { return []string{pod.Node}, nil },
	})
	selected := func(options *metav1.ListOptions) {
		options.LabelSelector, options.FieldSelector = selector.Labels, "spec.nodeName!="
	}
	shared := coreinformers.NewFilteredPodInformer(pods.client, selector.Namespace, 0, indexers, selected)
	w.Informer = cached.NewInformer[*Pod](shared, cached.Transform(func(pod *corev1.Pod) *Pod {
		return NewPod(pod, selector.Container)
	}))
	w.Handle(cache.TypedResourceEventHandlerFuncs[*Pod]{
		AddFunc: func(pod *Pod) { w.handleChange(pod) },
		UpdateFunc: func(old, pod *Pod) {
			if !old.Same(pod) {
				w.handleChange(pod)
			}
		},
		DeleteFunc: func(deleted cache.DeletedObject[*Pod]) {
			if pod := deleted.OptionalObj; pod != nil {
				w.handleChange(pod)
			} else {
				w.handleChangeOfAny()
			}
		},
	})
	return w
}

// runUntilDone watches until ctx ends. No Pods are known before the cache is complete.
func (w *podWatch) runUntilDone(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { w.Run(ctx) })
	if cache.WaitFor(ctx, "", w.Synced()...) {
		w.synced.Store(true)
		w.handleChangeOfAny()
	}
	running.Wait()
}

func (w *podWatch) handleChange(pod *Pod) {
	w.recordDrivers(pod)
	if !w.synced.Load() {
		return
	}
	for _, handle := range w.pods.onNode {
		handle(pod.Node)
	}
}

func (w *podWatch) handleChangeOfAny() {
	for _, handle := range w.pods.onAll {
		handle()
	}
}

// recordDrivers records the names of drivers that run in a Pod.
func (w *podWatch) recordDrivers(pod *Pod) {
	for _, t := range *w.templates.Load() {
		data := sync.OnceValues(pod.dataForTemplates)
		if !t.NamesDriver() || !wantsPod(t, pod, data) {
			continue
		}
		if bound, err := bindToPod(t, pod, data); err == nil {
			w.pods.drivers.LoadOrStore(bound.Driver, true)
		}
	}
}
