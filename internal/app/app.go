package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/internal/claims"
	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/controller/shard"
	"github.com/kwok-dra/kwok-dra/internal/observe"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice"
	"github.com/kwok-dra/kwok-dra/internal/status"
	"github.com/kwok-dra/kwok-dra/internal/util/flags"
	"github.com/kwok-dra/kwok-dra/internal/util/version"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// Main is the program kwok-dra with the given extensions. It exits with 1 after an error, which it prints.
func Main(extensions ...Extension) {
	if err := runCommand(os.Args[1:], extensions); err != nil {
		fmt.Fprintln(os.Stderr, "kwok-dra:", err)
		os.Exit(1)
	}
}

// runCommand runs until it fails, or a signal ends it.
func runCommand(arguments []string, extensions []Extension) error {
	options := NewOptions(extensions...)
	given := options.Flags()
	if err := given.Parse(arguments); errors.Is(err, pflag.ErrHelp) {
		return nil
	} else if err != nil {
		return flags.Error(given, "kwok-dra", err)
	}
	if given.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: give each file with a --config of its own", given.Arg(0))
	}
	if options.Version {
		fmt.Println("kwok-dra", version.Get())
		return nil
	}
	if err := options.Complete(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return Run(ctx, options)
}

// Run runs the sidecar until ctx ends. The options must be completed.
func Run(ctx context.Context, o *Options) error {
	store, err := newStore(ctx, o)
	if err != nil {
		return err
	}
	found, err := o.RESTConfig()
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
	s := newSidecar(o, client, objects, store, owner, events)
	return s.runParts(ctx)
}

// newStore makes the store with the configuration files in it.
func newStore(ctx context.Context, o *Options) (*config.Store, error) {
	carriers := []string{config.FilesCarrier}
	for _, name := range o.configMaps {
		carriers = append(carriers, config.ConfigMapCarrier(name))
	}
	if len(o.Kinds) > 0 {
		carriers = append(carriers, config.ObjectsCarrier)
	}
	store := config.NewStore(carriers...)
	documents, err := config.ReadFiles(ctx, o.Config)
	if err != nil {
		return nil, err
	}
	return store, store.Replace(config.FilesCarrier, documents)
}

// sidecar is the program: the core with its extensions, and what they add to it.
type sidecar struct {
	Core

	options *Options
}

func newSidecar(o *Options, client kubernetes.Interface, objects dynamic.Interface, store *config.Store, owner *shard.Owner, events record.EventBroadcaster) *sidecar {
	s := &sidecar{options: o, Core: Core{
		Cluster: Cluster{
			Client: client, Objects: objects, Caches: observe.New(client, &o.Managed),
			Recorder: events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: v1alpha1.ManagedByValue}),
		},
		Replica: Replica{Owner: owner, Managed: &o.Managed, Workers: o.Workers},
		Config:  store, IsServing: o.ServerAddress != "", routes: map[string]http.Handler{}, ReportUnselected: func(map[string]string) {},
	}}
	for _, extension := range o.extensions {
		if extension.Provide != nil {
			extension.Provide(&s.Core)
		}
	}
	publishing := resourceslice.Options{Client: client, Config: store, Caches: s.Caches, Owner: owner, Recorder: s.Recorder, DriverPods: s.DriverPods}
	var writer *status.Writer // of custom resources
	if len(o.Kinds) > 0 {
		writer = status.New(objects, owner, owner.Recorder(s.Recorder), store.Acceptance, o.Kinds...)
		publishing.Outcomes, s.ReportUnselected = writer.Outcomes, writer.Unselected
	}
	publisher := resourceslice.New(publishing)
	s.Preparer = claims.New(claims.Options{
		Client: client, Config: store, Caches: s.Caches, Owner: owner, Events: events,
		DriverPods: s.DriverPods, Kubelets: s.Kubelets, Gate: s.Gate, DeviceHealth: s.DeviceHealth, KubeletRecorder: s.KubeletRecorder,
	})
	if writer != nil {
		read := config.NewObjects(store, owner.Recorder(s.Recorder), writer.Changed)
		s.Add(
			Part{Run: config.NewCustomResources(objects, client.Discovery(), read, o.Kinds...).Run},
			Part{Run: func(ctx context.Context) { writer.Run(ctx, publisher.Idle) }, Check: writer.CheckHealth},
		)
	}
	if name := o.configMap; name != nil {
		s.Add(Part{Run: config.NewConfigMap(client, *name, store, owner.Recorder(s.Recorder)).Run})
	}
	info := version.Info()
	buildInfo := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "kwok_dra_build_info", Help: "Always 1, with the version of kwok-dra and the version of Go that compiled it.",
	}, []string{"version", "goversion"})
	buildInfo.WithLabelValues(info.GitVersion, info.GoVersion).Set(1)
	s.Collect(buildInfo, store, owner.Metrics(), publisher.Metrics(), s.Preparer.Metrics())
	s.Add(
		Part{Run: owner.Run, Synced: owner.Synced()},
		Part{Run: func(ctx context.Context) { publisher.Run(ctx, o.Workers) }, Check: publisher.CheckHealth},
		Part{Run: func(ctx context.Context) { s.Preparer.Run(ctx, o.Workers) }, Check: s.Preparer.CheckHealth},
	)
	for _, extension := range o.extensions {
		if extension.Start != nil {
			extension.Start(&s.Core)
		}
	}
	s.Add(Part{Run: s.Caches.Run, Synced: s.Caches.Synced()}) // all handlers are added
	return s
}

// Collectors returns the collectors that a sidecar with extensions registers, of one that never
// runs: the documentation lists their metrics.
func Collectors(extensions ...Extension) []prometheus.Collector {
	client := kubernetes.NewForConfigOrDie(&rest.Config{})
	owner := shard.New(shard.Options{Mode: shard.Lease, Client: client})
	return newSidecar(NewOptions(extensions...), client, nil, config.NewStore(config.FilesCarrier), owner, record.NewBroadcaster()).collectors
}

func (s *sidecar) runParts(ctx context.Context) error {
	logger := klog.FromContext(ctx)
	registry := prometheus.NewRegistry()
	registry.MustRegister(s.collectors...)
	site := &site{registry: registry, synced: s.Config.Synced(), routes: s.routes, guard: s.Guard, profiling: s.options.Profiling}
	for _, part := range s.parts {
		site.synced = append(site.synced, part.Synced...)
		if part.Check != nil {
			site.checks = append(site.checks, part.Check)
		}
	}
	server, err := startServer(ctx, s.options.ServerAddress, site.newHandler(), s.TLS)
	if err != nil {
		return err
	}
	logger.Info("Started", append([]any{
		"version", version.Get(), "config", s.options.Config, "configMap", s.options.ConfigMap, "workers", s.options.Workers, "shardMode", s.options.ShardMode,
		"installation", s.Owner.Installation(), "kubeAPIQPS", s.options.KubeAPIQPS, "managedNodes", s.options.Managed.String(),
	}, s.options.StartLog...)...)
	var running sync.WaitGroup
	running.Go(func() { server.runServer(ctx) })
	running.Go(func() { s.logUntilReachable(ctx) })
	running.Go(func() {
		if cache.WaitFor(ctx, "", site.synced...) {
			logger.Info("Ready")
		}
		for _, part := range s.parts {
			if part.WhenReady {
				running.Go(func() { part.Run(ctx) })
			}
		}
	})
	for _, part := range s.parts {
		if !part.WhenReady {
			running.Go(func() { part.Run(ctx) })
		}
	}
	running.Wait()
	logger.Info("Stopped")
	return nil
}

// eventSink writes events until ctx ends: the calls that record makes have no context,
// and client-go waits as long as a busy API server asks for.
//
// It names events about the content of an object by a hash of their message. So the API
// server refuses the same event after a restart, as long as it keeps the first one.
type eventSink struct {
	ctx    context.Context
	events typedcorev1.EventExpansion
}

// Create implements record.EventSink.
func (s *eventSink) Create(event *corev1.Event) (*corev1.Event, error) {
	if event.Reason == v1alpha1.ReasonNormalized {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s", event.InvolvedObject.UID, event.Reason, event.Message))
		event.Name = fmt.Sprintf("%s.%x", event.InvolvedObject.Name, sum[:8])
	}
	return s.events.CreateWithEventNamespaceWithContext(s.ctx, event)
}

// Update implements record.EventSink.
func (s *eventSink) Update(event *corev1.Event) (*corev1.Event, error) {
	return s.events.UpdateWithEventNamespaceWithContext(s.ctx, event)
}

// Patch implements record.EventSink. It counts how often an event was.
func (s *eventSink) Patch(event *corev1.Event, data []byte) (*corev1.Event, error) {
	if event.Reason == v1alpha1.ReasonNormalized {
		return event, nil
	}
	return s.events.PatchWithEventNamespaceWithContext(s.ctx, event, data)
}

// reachabilityInterval is how often an API server that does not answer is asked.
const reachabilityInterval = 5 * time.Second

// logUntilReachable logs that the API server does not answer, until it has answered once. Without it the caches would wait
// in silence: client-go does not report connections that are refused.
func (s *sidecar) logUntilReachable(ctx context.Context) {
	_ = wait.PollUntilContextCancel(ctx, reachabilityInterval, true, func(ctx context.Context) (isReachable bool, _ error) {
		_, err := s.Client.Discovery().ServerVersionWithContext(ctx)
		if err == nil || apierrors.ReasonForError(err) != metav1.StatusReasonUnknown {
			return true, nil
		}
		klog.FromContext(ctx).Error(err, "The API server does not answer")
		return false, nil
	})
}
