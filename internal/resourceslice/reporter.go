package resourceslice

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/internal/controller/installation"
	"github.com/kwok-dra/kwok-dra/internal/controller/loop"
	"github.com/kwok-dra/kwok-dra/internal/controller/shard"
	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/observe"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice/features"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice/plan"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// reporter reports by events and metrics what keeps templates from being published. It remembers what it has reported,
// so that it says each thing once.
type reporter struct {
	recorder record.EventRecorder
	outcomes func(of string, templates map[string]Outcome)
	owner    *shard.Owner
	metrics  *metrics

	// owned has the owner of each pool that belongs to another installation.
	owned sync.Map

	mu sync.Mutex
	// hidden has pairs of names: a template, and the one that hides it.
	hidden map[[2]string]bool
	// dropped has the fields that the API server drops.
	dropped map[features.Dropped]bool
}

func newReporter(o Options) *reporter {
	return &reporter{
		recorder: o.Recorder, outcomes: o.Outcomes, owner: o.Owner, metrics: newMetrics(o.Caches.Slices),
		hidden: map[[2]string]bool{}, dropped: map[features.Dropped]bool{},
	}
}

// reportProblems reports problems by their cause: templates that cannot be rendered for the node, or its annotation.
// Only a change of the node or of the configuration can help.
func (r *reporter) reportProblems(node *corev1.Node, problems map[string]error) error {
	var errs []error
	for _, cause := range slices.Sorted(maps.Keys(problems)) {
		r.metrics.failing.WithLabelValues(cause).Inc()
		r.recordEvent(node, v1alpha1.ReasonPublishFailed, problems[cause])
		errs = append(errs, problems[cause])
	}
	return loop.Terminal(errors.Join(errs...))
}

// reportFailure reports an API call that failed, after so many failures before. What the API server refuses for good is
// reported at once, all else after loop.FailuresBeforeEvent failures.
func (r *reporter) reportFailure(node *corev1.Node, err error, failures int) error {
	if loop.LostRace(err) {
		return err
	}
	_, isLayout := errors.AsType[*plan.LayoutError](err)
	if _, isOwned := errors.AsType[*installation.OwnedError](err); isLayout || node != nil && isOwned {
		return r.reportProblems(node, map[string]error{"template": err})
	}
	r.metrics.failing.WithLabelValues("api").Inc()
	isFinal := loop.IsRefusal(err) && !errors.Is(err, errStored) // which may only show that a feature gate is off
	if node != nil && (isFinal || failures >= loop.FailuresBeforeEvent) {
		r.recordEvent(node, v1alpha1.ReasonPublishFailed, err)
	}
	return err
}

// reportDropped reports each dropped field once for each source.
func (r *reporter) reportDropped(ctx context.Context, node *corev1.Node, all []features.Dropped) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, dropped := range all {
		if r.dropped[dropped] {
			continue
		}
		r.dropped[dropped] = true
		source, field := dropped.Source, dropped.Field
		r.metrics.dropped.WithLabelValues(source, field.Name).Set(1)
		what, fix := fmt.Sprintf("%s of the devices of template %s", field.Name, source), "remove the field"
		switch {
		case source == v1alpha1.DeviceTaintsAnnotation:
			what, fix = "the taints of annotation "+source, "remove the annotation"
		case field.Without != "":
			what += ", and its pool is not published, since " + field.Without
		}
		err := fmt.Errorf("the API server drops %s: turn on its feature gate %s, or %s", what, field.Gate, fix)
		klog.FromContext(ctx).Error(err, "The API server drops a field of devices", "node", node.Name)
		if r.owner.Leads() { // all replicas find out
			r.recordEvent(node, v1alpha1.ReasonFieldsDropped, err)
		}
	}
}

// forgetUnused forgets reports about templates that are gone, or no longer use a dropped field.
func (r *reporter) forgetUnused(templates []*devices.Template) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for dropped := range r.dropped {
		if !dropped.InUse(templates) {
			delete(r.dropped, dropped)
			r.metrics.dropped.DeleteLabelValues(dropped.Source, dropped.Field.Name)
		}
	}
	isInUse := func(name string) bool {
		return slices.ContainsFunc(templates, func(t *devices.Template) bool { return t.Name == name })
	}
	maps.DeleteFunc(r.hidden, func(pair [2]string, _ bool) bool { return !isInUse(pair[0]) || !isInUse(pair[1]) })
}

// reportHidden reports a template that another one hides, as an event on its object. One event for each pair is enough,
// on however many nodes it applies.
func (r *reporter) reportHidden(node *corev1.Node, hidden map[*devices.Template]*devices.Template) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for t, by := range hidden {
		pair := [2]string{t.Name, by.Name}
		if t.Origin.Carrier == nil || r.hidden[pair] {
			continue
		}
		r.hidden[pair] = true
		r.recordEvent(t.Origin.Carrier, v1alpha1.ReasonTemplateHidden, fmt.Errorf("%s; for example on node %s", plan.Hides(t, by), node.Name))
	}
}

// reportOwned reports, once, that the pool of a template belongs to another installation.
func (r *reporter) reportOwned(ctx context.Context, t target, template *devices.Template, owned *installation.OwnedError) {
	if before, _ := r.owned.Swap(t.key, owned.Owner); before == owned.Owner {
		return
	}
	klog.FromContext(ctx).Error(owned, "Skipped: the pool belongs to another installation", "pool", t.key)
	var about runtime.Object = t.node
	if template.Origin.Carrier != nil {
		about = template.Origin.Carrier
	}
	r.recordEvent(about, v1alpha1.ReasonPoolNotManaged, owned)
}

func (r *reporter) recordEvent(about runtime.Object, reason string, err error) {
	r.recorder.Event(about, corev1.EventTypeWarning, reason, v1alpha1.EventMessage(err))
}

// metrics are the metrics of publication, and all is their collector.
type metrics struct {
	all     *prometheus.Registry
	writes  *prometheus.CounterVec
	latency prometheus.Histogram
	dropped *prometheus.GaugeVec
	failing *prometheus.CounterVec
}

func newMetrics(published *observe.Slices) *metrics {
	m := &metrics{
		all: prometheus.NewRegistry(),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kwok_dra_slice_writes_total",
			Help: "Writes of ResourceSlices, by verb (create, update, delete) and result (ok or the API server's reason).",
		}, []string{"verb", "result"}),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "kwok_dra_publish_duration_seconds",
			Help:    "Time from the event of a Node, or of a driver Pod on it, to the API server's answer to the last write that it caused.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
		}),
		dropped: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kwok_dra_dropped_fields",
			Help: "1 for each template and device field that the API server drops because a feature gate is off. For taints of the annotation of a Node, template is the name of the annotation.",
		}, []string{"template", "field"}),
		failing: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kwok_dra_publish_failures_total",
			Help: "Failures to bring a Node to the desired state, by cause (template, annotation, api). Each retry counts.",
		}, []string{"cause"}),
	}
	m.all.MustRegister(m.writes, m.latency, m.dropped, m.failing, &gauges{
		published: published,
		slices:    prometheus.NewDesc("kwok_dra_slices", "ResourceSlices that are published now, by driver.", []string{"driver"}, nil),
		devices:   prometheus.NewDesc("kwok_dra_devices", "Devices that are published now, by driver.", []string{"driver"}, nil),
	})
	return m
}

// gauges are counted in the cache when Prometheus scrapes them, so they cannot drift.
type gauges struct {
	published       *observe.Slices
	slices, devices *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(ch chan<- *prometheus.Desc) {
	ch <- g.slices
	ch <- g.devices
}

// Collect implements prometheus.Collector.
func (g *gauges) Collect(ch chan<- prometheus.Metric) {
	slices, devices := map[string]int{}, map[string]int{}
	for slice := range g.published.All() {
		slices[slice.Driver]++
		devices[slice.Driver] += len(slice.Devices.List())
	}
	for driver, count := range slices {
		ch <- prometheus.MustNewConstMetric(g.slices, prometheus.GaugeValue, float64(count), driver)
		ch <- prometheus.MustNewConstMetric(g.devices, prometheus.GaugeValue, float64(devices[driver]), driver)
	}
}
