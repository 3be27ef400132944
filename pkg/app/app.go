package app

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/claims"
	"github.com/kwok-dra/kwok-dra/pkg/classes"
	"github.com/kwok-dra/kwok-dra/pkg/config"
	"github.com/kwok-dra/kwok-dra/pkg/inventory"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/page"
	"github.com/kwok-dra/kwok-dra/pkg/renewals"
	"github.com/kwok-dra/kwok-dra/pkg/selection"
	"github.com/kwok-dra/kwok-dra/pkg/shard"
	"github.com/kwok-dra/kwok-dra/pkg/slices"
	"github.com/kwok-dra/kwok-dra/pkg/status"
)

// version is set by the linker for releases.
var version string

// Version is the version of the sidecar, from the linker or from the module's
// build information.
func Version() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// Run runs the sidecar until ctx ends. The options must be completed.
func Run(ctx context.Context, o *Options) error {
	limitGarbage()
	store, err := newStore(ctx, o)
	if err != nil {
		return err
	}
	found, err := o.restConfig()
	if err != nil {
		return err
	}
	client, err := newClients(found)
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registry.MustRegister(clientMetrics()...)

	events := record.NewBroadcaster(record.WithContext(ctx))
	defer events.Shutdown()
	events.StartRecordingToSink(onceSink{&typedcorev1.EventSinkImpl{Interface: client.all.CoreV1().Events("")}})

	owner, err := newOwner(o)
	if err != nil {
		return err
	}
	s, err := newSidecar(o, client, store, owner, events)
	if err != nil {
		return err
	}
	registry.MustRegister(s.collectors()...)
	return s.run(ctx, registry)
}

// newStore makes the store with the configuration files in it.
func newStore(ctx context.Context, o *Options) (*config.Store, error) {
	carriers := []string{config.FilesCarrier}
	if o.configMap != nil {
		carriers = append(carriers, config.ConfigMapCarrier(*o.configMap))
	}
	if o.draKwokConfigMap != nil {
		carriers = append(carriers, config.ConfigMapCarrier(*o.draKwokConfigMap))
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

// clients are those of the API server.
type clients struct {
	// quiet is for nodes, without their heartbeats, and leases, without renewals; all
	// is for the rest.
	all, quiet kubernetes.Interface
}

func newClients(c *rest.Config) (clients, error) {
	all, err := kubernetes.NewForConfig(c)
	if err != nil {
		return clients{}, err
	}
	quiet, err := renewals.LeaveOut(all, c)
	return clients{all, quiet}, err
}

// tune sets what a fleet needs: client-go's default of 5 requests per second
// would take hours for it, and protobuf halves the cost of decoding.
func tune(c *rest.Config, qps float32) *rest.Config {
	c.QPS = qps
	c.Burst = max(1, int(2*qps))
	c.UserAgent = v1alpha1.ManagedByValue + "/" + Version()
	c.ContentType = "application/vnd.kubernetes.protobuf"
	c.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	c.Wrap(reconnect)
	return c
}

// sidecar has the controllers of the program, and what they work with.
type sidecar struct {
	options   *Options
	client    kubernetes.Interface
	store     *config.Store
	owner     *shard.Owner
	recorder  record.EventRecorder
	nodes     *lifecycle.Nodes
	publisher *slices.Publisher
	preparer  *claims.Preparer
	// unselected finds templates that select no node.
	unselected *selection.Watcher
	// objects and status are nil without custom resources.
	objects *config.CustomResources
	status  *status.Writer
	// classes is nil without the ConfigMap that wants DeviceClasses.
	classes *classes.Keeper
}

func newSidecar(o *Options, client clients, store *config.Store, owner *shard.Owner, events record.EventBroadcaster) (*sidecar, error) {
	s := &sidecar{
		options:  o,
		client:   client.all,
		store:    store,
		owner:    owner,
		recorder: events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: v1alpha1.ManagedByValue}),
		nodes:    lifecycle.NewNodes(client.quiet, &o.Managed),
	}
	options := slices.Options{Client: client.all, Config: store, Nodes: s.nodes, Owner: owner, Recorder: s.recorder}
	watched := selection.Options{Config: store, Nodes: s.nodes, Owner: owner}
	var err error
	if len(o.kinds) > 0 {
		if err := s.addCustomResources(); err != nil {
			return nil, err
		}
		options.Outcomes, watched.Report = s.status.Outcomes, s.status.Unselected
	}
	if s.unselected, err = selection.NewWatcher(watched); err != nil {
		return nil, err
	}
	if o.draKwokConfigMap != nil {
		if s.classes, err = classes.New(client.all, store, owner, s.recorder); err != nil {
			return nil, err
		}
	}
	if s.publisher, err = slices.New(options); err != nil {
		return nil, err
	}
	s.preparer, err = claims.New(claims.Options{
		Client: client.all, Config: store, Nodes: s.nodes, Owner: owner,
		Published: s.publisher.Published, PublishedDevice: s.publisher.PublishedDevice, Events: events,
	})
	return s, err
}

// addCustomResources reads templates from the cluster, and writes their status.
func (s *sidecar) addCustomResources() error {
	rest, err := s.options.restConfig()
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(rest)
	if err != nil {
		return fmt.Errorf("make a client for custom resources: %w", err)
	}
	var objects *config.Objects
	acceptance := func(kind string) map[string]config.Acceptance { return objects.Acceptance(kind) }
	s.status = status.New(client, s.owner, acceptance, s.options.kinds...)
	objects = config.NewObjects(s.store, s.owner.Recorder(s.recorder), s.status.Changed)
	s.objects = config.NewCustomResources(client, s.client.Discovery(), objects, s.options.kinds...)
	return nil
}

// configMaps are those that are watched for configuration.
func (s *sidecar) configMaps(ctx context.Context) ([]*config.ConfigMap, error) {
	var all []*config.ConfigMap
	if name := s.options.configMap; name != nil {
		own, err := config.NewConfigMap(ctx, s.client, *name, s.store, s.owner.Recorder(s.recorder))
		if err != nil {
			return nil, err
		}
		all = append(all, own)
	}
	if name := s.options.draKwokConfigMap; name != nil {
		adapted, err := config.NewAdaptedConfigMap(ctx, s.client, *name, s.store, s.owner.Recorder(s.recorder))
		if err != nil {
			return nil, err
		}
		all = append(all, adapted)
	}
	return all, nil
}

// Collectors returns the collectors that a sidecar registers, of one that never
// runs: the documentation lists their metrics.
func Collectors() ([]prometheus.Collector, error) {
	client, err := newClients(&rest.Config{})
	if err != nil {
		return nil, err
	}
	options := NewOptions()
	store, err := newStore(context.Background(), options)
	if err != nil {
		return nil, err
	}
	owner, err := shard.New(shard.Options{Mode: shard.Lease, Client: client.all})
	if err != nil {
		return nil, err
	}
	s, err := newSidecar(options, client, store, owner, record.NewBroadcaster())
	if err != nil {
		return nil, err
	}
	return append(clientMetrics(), s.collectors()...), nil
}

func (s *sidecar) collectors() []prometheus.Collector {
	return []prometheus.Collector{s.store, s.owner, s.publisher.Metrics(), s.preparer.Metrics(), inventory.NewCollector(s.source())}
}

// source is the source of the page and of the metrics of devices.
func (s *sidecar) source() *inventory.Source {
	return &inventory.Source{
		Nodes:       s.publisher.Nodes,
		Slices:      s.publisher.Slices,
		Allocations: s.preparer.Allocations,
		Changes:     func() uint64 { return s.publisher.Changes() + s.preparer.Changes() },
	}
}

func (s *sidecar) run(ctx context.Context, registry *prometheus.Registry) error {
	logger := klog.FromContext(ctx)
	synced := append(s.owner.Synced(), append(s.publisher.Synced(), s.preparer.Synced()...)...)
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	configMaps, err := s.configMaps(ctx)
	if err != nil {
		return err
	}
	for _, configMap := range configMaps {
		synced = append(synced, configMap.Synced())
		running.Go(func() { configMap.Run(ctx) })
	}
	if s.classes != nil {
		synced = append(synced, s.classes.Synced())
		running.Go(func() { s.classes.Run(ctx) })
	}
	if s.objects != nil {
		synced = append(synced, s.objects.Synced())
		running.Go(func() { s.objects.Run(ctx) })
		running.Go(func() { s.status.Run(ctx) })
	}
	server, err := s.listen(ctx, registry, synced)
	if err != nil {
		return err
	}
	running.Go(func() { server.run(ctx) })
	running.Go(func() {
		if cache.WaitFor(ctx, "", synced...) {
			logger.Info("Ready")
		}
	})

	running.Go(func() { s.tellUnreachable(ctx) })
	logger.Info("Started", "version", Version(), "config", s.options.Config, "configMap", s.options.ConfigMap,
		"draKwokConfigMap", s.options.DRAKwokConfigMap, "adapters", s.options.Adapters,
		"workers", s.options.Workers, "shardMode", s.options.ShardMode, "kubeAPIQPS", s.options.KubeAPIQPS, "managedNodes", s.options.Managed.String())
	running.Go(func() { s.owner.Run(ctx) })
	running.Go(func() { s.nodes.Run(ctx) })
	running.Go(func() { s.unselected.Run(ctx) })
	running.Go(func() { s.preparer.Run(ctx, s.options.Workers, s.publisher.Synced()...) })
	s.publisher.Run(ctx, s.options.Workers, s.preparer.Synced()...)
	logger.Info("Stopped")
	return nil
}

// listen begins to serve.
func (s *sidecar) listen(ctx context.Context, registry *prometheus.Registry, synced []cache.DoneChecker) (*server, error) {
	secure, guard, err := s.options.secure(s.client)
	if err != nil {
		return nil, err
	}
	site := &site{registry: registry, synced: synced, page: page.New(s.source()), guard: guard, profiling: s.options.Profiling}
	return serve(ctx, s.options.ServerAddress, site.handler(), secure)
}

// askAgain is how long after a failure the API server is asked again.
const askAgain = 5 * time.Second

// tellUnreachable logs that the API server does not answer, until it has answered
// once. Without it the caches would wait in silence: client-go does not report
// connections that are refused.
func (s *sidecar) tellUnreachable(ctx context.Context) {
	for ctx.Err() == nil {
		_, err := s.client.Discovery().ServerVersionWithContext(ctx)
		if err == nil || apierrors.ReasonForError(err) != metav1.StatusReasonUnknown {
			return
		}
		klog.FromContext(ctx).Error(err, "The API server does not answer")
		select {
		case <-ctx.Done():
		case <-time.After(askAgain):
		}
	}
}
