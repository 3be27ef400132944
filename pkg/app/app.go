package app

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/pkg/adapters"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/claims"
	"github.com/kwok-dra/kwok-dra/pkg/claims/templates"
	"github.com/kwok-dra/kwok-dra/pkg/classes"
	"github.com/kwok-dra/kwok-dra/pkg/config"
	"github.com/kwok-dra/kwok-dra/pkg/containerview"
	"github.com/kwok-dra/kwok-dra/pkg/containerview/injections"
	"github.com/kwok-dra/kwok-dra/pkg/devicemetrics"
	"github.com/kwok-dra/kwok-dra/pkg/driverpods"
	"github.com/kwok-dra/kwok-dra/pkg/inventory"
	"github.com/kwok-dra/kwok-dra/pkg/inventory/live"
	"github.com/kwok-dra/kwok-dra/pkg/kubelet"
	"github.com/kwok-dra/kwok-dra/pkg/kubeletmetrics"
	"github.com/kwok-dra/kwok-dra/pkg/observe"
	"github.com/kwok-dra/kwok-dra/pkg/page"
	"github.com/kwok-dra/kwok-dra/pkg/resourceslice"
	"github.com/kwok-dra/kwok-dra/pkg/selection"
	"github.com/kwok-dra/kwok-dra/pkg/shard"
	"github.com/kwok-dra/kwok-dra/pkg/status"
	"github.com/kwok-dra/kwok-dra/pkg/taintrules"
	"github.com/kwok-dra/kwok-dra/pkg/version"
	"github.com/kwok-dra/kwok-dra/pkg/view"
)

// Run runs the sidecar until ctx ends. The options must be completed.
func Run(ctx context.Context, o *Options) error {
	store, err := newStore(ctx, o)
	if err != nil {
		return err
	}
	found, err := o.restConfig()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(found)
	if err != nil {
		return err
	}
	objects, err := dynamic.NewForConfig(found)
	if err != nil {
		return fmt.Errorf("make a client for custom resources: %w", err)
	}
	events := record.NewBroadcaster(record.WithContext(ctx))
	defer events.Shutdown()
	events.StartRecordingToSink(&eventSink{ctx: ctx, events: client.CoreV1().Events("")})

	owner, err := newOwner(o, found)
	if err != nil {
		return err
	}
	s := &sidecar{options: o, client: client, objects: objects, store: store, owner: owner}
	s.build(events)
	return s.run(ctx)
}

// newStore makes the store with the configuration files in it.
func newStore(ctx context.Context, o *Options) (*config.Store, error) {
	carriers := []string{config.FilesCarrier}
	for _, name := range []*types.NamespacedName{o.configMap, o.draKwokConfigMap} {
		if name != nil {
			carriers = append(carriers, config.ConfigMapCarrier(*name))
		}
	}
	if len(o.kinds) > 0 {
		carriers = append(carriers, config.ObjectsCarrier)
	}
	store := config.NewStore(carriers...)
	documents, err := config.ReadFiles(ctx, o.Config)
	if err != nil {
		return nil, err
	}
	return store, store.Replace(config.FilesCarrier, documents)
}

// tune sets what a fleet needs: client-go's default of 5 requests per second
// would take hours for it, and protobuf halves the cost of decoding.
func tune(c *rest.Config, qps float32) *rest.Config {
	c.QPS = qps
	c.Burst = max(1, int(2*qps))
	c.UserAgent = v1alpha1.ManagedByValue + "/" + version.Get()
	c.ContentType = "application/vnd.kubernetes.protobuf"
	c.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	c.Wrap(reconnect)
	return c
}

// sidecar has the controllers of the program, and what they work with.
type sidecar struct {
	options    *Options
	client     kubernetes.Interface
	objects    dynamic.Interface
	store      *config.Store
	owner      *shard.Owner
	caches     *observe.Caches
	driverPods *driverpods.Pods
	publisher  *resourceslice.Publisher
	kubelets   *kubelet.Kubelets
	claims     *claims.Controller
	kubelet    *kubeletmetrics.Metrics
	// taintRules are those that the page and the metrics show.
	taintRules *taintrules.Watcher
	// source is the source of the page and of the metrics of devices.
	source *inventory.Source
	parts  []part
}

// part is one of the things that run beside each other.
type part struct {
	run func(ctx context.Context)
	// synced are done when the sidecar is ready.
	synced []cache.DoneChecker
	// check, if there is one, returns an error while a restart may help.
	check func() error
}

func (s *sidecar) build(events record.EventBroadcaster) {
	recorder := events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: v1alpha1.ManagedByValue})
	caches := observe.New(s.client, &s.options.Managed)
	s.caches, s.driverPods, s.taintRules = caches, driverpods.New(s.client, s.store, caches.Slices), taintrules.NewWatcher(s.client)
	publishing := resourceslice.Options{Client: s.client, Config: s.store, Caches: caches, Owner: s.owner, Recorder: recorder, DriverPods: s.driverPods}
	report := func(map[string]string) {}
	if len(s.options.kinds) > 0 {
		writer := s.addCustomResources(recorder)
		publishing.Outcomes, report = writer.Outcomes, writer.Unselected
	}
	s.addConfigMaps(recorder)
	s.publisher = resourceslice.New(publishing)
	s.kubelet = kubeletmetrics.New()
	s.kubelets = kubelet.New(kubelet.Options{Client: s.client, Config: s.store, Caches: caches, Owner: s.owner, Recorder: recorder, Directory: s.options.PluginsDir, WipeDelay: kubelet.WipeDelay, KubeletMetrics: s.kubelet})
	s.claims = claims.New(claims.Options{Client: s.client, Config: s.store, Caches: caches, Owner: s.owner, Events: events, DriverPods: s.driverPods, Kubelets: s.kubelets, KubeletRecorder: s.kubelet})
	s.source = live.NewSource(live.Options{Config: s.store, Caches: caches, Preparer: s.claims, Kubelets: s.kubelets, TaintRules: s.taintRules})
	views := view.New(view.Options{Client: s.objects, Config: s.store, Caches: caches, Owner: s.owner, Drivers: s.drivers(caches), Shared: s.kubelets.Shared, Directory: s.options.ContainerView})
	if s.options.MetricsDevices {
		devicemetrics.TellMistakes(caches, s.owner, recorder)
	}
	if after := s.options.ExplainPodsAfter; after > 0 {
		s.addExplainer(after, recorder)
	}
	if s.options.ServerAddress != "" { // or nobody would see them
		s.parts = append(s.parts, part{run: s.taintRules.Run})
	}
	unselected := selection.NewWatcher(s.store, caches.Nodes, s.owner, report)
	s.parts = append(s.parts,
		part{run: s.owner.Run, synced: s.owner.Synced()},
		part{run: caches.Run, synced: caches.Synced()},
		part{run: s.driverPods.Run},
		part{run: unselected.Run},
		part{run: func(ctx context.Context) { s.publisher.Run(ctx, s.options.Workers) }, check: s.publisher.CheckHealth},
		part{run: func(ctx context.Context) { s.kubelets.Run(ctx, s.options.Workers) }, check: s.kubelets.CheckHealth},
		part{run: func(ctx context.Context) { s.claims.Run(ctx, s.options.Workers) }, check: s.claims.CheckHealth},
		part{run: func(ctx context.Context) { views.Run(ctx, s.options.Workers) }, check: views.CheckHealth},
	)
}

// drivers are those of a node.
func (s *sidecar) drivers(caches *observe.Caches) func(*config.Set, *corev1.Node) containerview.Drivers {
	return func(set *config.Set, node *corev1.Node) containerview.Drivers {
		made := templates.New(set, node, templates.Slices{}, s.driverPods.On(node.Name))
		if s.kubelets.Enabled() {
			made.Except(s.kubelets.Driver(nil, node, set.HasDriver).Has)
		}
		return s.kubelets.View(node, &injections.Templates{Driver: made})
	}
}

// addCustomResources reads templates from the cluster, and writes their status.
func (s *sidecar) addCustomResources(recorder record.EventRecorder) *status.Writer {
	writer := status.New(s.objects, s.owner, s.store.Acceptance, func() bool { return s.publisher.Idle() }, s.options.kinds...)
	objects := config.NewObjects(s.store, s.owner.Recorder(recorder), writer.Changed)
	watched := config.NewCustomResources(s.objects, s.client.Discovery(), objects, s.options.kinds...)
	s.parts = append(s.parts, part{run: watched.Run}, part{run: writer.Run, check: writer.CheckHealth})
	return writer
}

// addConfigMaps reads the ConfigMaps that are watched for configuration, and keeps the
// DeviceClasses that one of them wants.
func (s *sidecar) addConfigMaps(recorder record.EventRecorder) {
	if name := s.options.configMap; name != nil {
		own := config.NewConfigMap(s.client, *name, s.store, s.owner.Recorder(recorder))
		s.parts = append(s.parts, part{run: own.Run})
	}
	if name := s.options.draKwokConfigMap; name != nil {
		adapted := config.NewAdaptedConfigMap(s.client, *name, s.store, s.owner.Recorder(recorder), adapters.DRAKwokConfigMap)
		keeper := classes.New(s.client, s.store, s.owner, recorder)
		s.parts = append(s.parts, part{run: adapted.Run}, part{run: keeper.Run, synced: keeper.Synced(), check: keeper.CheckHealth})
	}
}

// Collectors returns the collectors that a sidecar registers, of one that never
// runs: the documentation lists their metrics.
func Collectors() []prometheus.Collector {
	client := kubernetes.NewForConfigOrDie(&rest.Config{})
	owner := shard.New(shard.Options{Mode: shard.Lease, Client: client})
	s := &sidecar{options: NewOptions(), client: client, store: config.NewStore(config.FilesCarrier), owner: owner}
	s.build(record.NewBroadcaster())
	return s.collectors()
}

func (s *sidecar) collectors() []prometheus.Collector {
	return []prometheus.Collector{s.store, s.owner, s.driverPods, s.publisher.Metrics(), s.claims.Metrics(), s.kubelets.Metrics(), s.kubelet, inventory.NewCollector(s.source)}
}

// page is what the page is made from.
func (s *sidecar) page() page.Options {
	return page.Options{
		Source: s.source,
		Labels: s.caches.Nodes.Labels,
		Slice: func(ctx context.Context, name string) (*resourcev1.ResourceSlice, error) {
			return s.client.ResourceV1().ResourceSlices().Get(ctx, name, metav1.GetOptions{})
		},
		Waiting: s.waiting,
		Why:     s.explain,
	}
}

// deviceMetrics serves what devices do, or is nil.
func (s *sidecar) deviceMetrics() http.Handler {
	if !s.options.MetricsDevices {
		return nil
	}
	return devicemetrics.New(devicemetrics.Options{
		Config: s.store, Caches: s.caches, Owner: s.owner, Drivers: s.drivers(s.caches), TaintRules: s.taintRules.Rules, Now: time.Now, Max: devicemetrics.MaxDevices,
	}).Handler()
}

func (s *sidecar) run(ctx context.Context) error {
	logger := klog.FromContext(ctx)
	registry := prometheus.NewRegistry()
	registry.MustRegister(s.collectors()...)
	served := page.New(s.page())
	site := &site{registry: registry, synced: s.store.Synced(), page: served, profiling: s.options.Profiling, devices: s.deviceMetrics()}
	for _, part := range s.parts {
		site.synced = append(site.synced, part.synced...)
		if part.check != nil {
			site.checks = append(site.checks, part.check)
		}
	}
	server, err := s.listen(ctx, site)
	if err != nil {
		return err
	}
	logger.Info("Started", "version", version.Get(), "config", s.options.Config, "configMap", s.options.ConfigMap,
		"draKwokConfigMap", s.options.DRAKwokConfigMap, "adapters", s.options.Adapters,
		"workers", s.options.Workers, "shardMode", s.options.ShardMode, "installation", s.owner.Installation(), "kubeAPIQPS", s.options.KubeAPIQPS, "managedNodes", s.options.Managed.String())
	var running sync.WaitGroup
	running.Go(func() { server.run(ctx) })
	running.Go(func() { s.tellUnreachable(ctx) })
	running.Go(func() {
		if cache.WaitFor(ctx, "", site.synced...) {
			logger.Info("Ready")
		}
		if s.options.ServerAddress != "" {
			served.Run(ctx)
		}
	})
	for _, part := range s.parts {
		running.Go(func() { part.run(ctx) })
	}
	running.Wait()
	logger.Info("Stopped")
	return nil
}

func (s *sidecar) listen(ctx context.Context, site *site) (*server, error) {
	secure, guard, err := s.options.secure(s.client)
	if err != nil {
		return nil, err
	}
	site.guard = guard
	return serve(ctx, s.options.ServerAddress, site.handler(), secure)
}

// askAgain is how long after a failure the API server is asked again.
const askAgain = 5 * time.Second

// tellUnreachable logs that the API server does not answer, until it has answered
// once. Without it the caches would wait in silence: client-go does not report
// connections that are refused.
func (s *sidecar) tellUnreachable(ctx context.Context) {
	for more := true; more; more = pause(ctx, askAgain) {
		_, err := s.client.Discovery().ServerVersionWithContext(ctx)
		if err == nil || apierrors.ReasonForError(err) != metav1.StatusReasonUnknown {
			return
		}
		klog.FromContext(ctx).Error(err, "The API server does not answer")
	}
}
