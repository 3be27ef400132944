package app

import (
	"context"
	"crypto/tls"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/kwok-dra/kwok-dra/internal/claims"
	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/controller/shard"
	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/observe"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
)

// Extension adds to the core, which works without any. It is for one sidecar. All fields are optional.
type Extension struct {
	// AddFlags adds flags, which the help lists after the core's flag of the name FlagsAfter.
	AddFlags   func(flags *pflag.FlagSet)
	FlagsAfter string
	// ClusterRole is the name of the one with the rights that it needs beside those of the core.
	ClusterRole string
	// SourceHint says which flags give kwok-dra something to publish.
	SourceHint string
	// Complete checks what the flags say, and adds sources of configuration.
	Complete func(options *Options) error
	// Provide gives the core what it cannot do itself, before its controllers are made.
	Provide func(core *Core)
	// Start adds what runs beside the core, once its controllers are made.
	Start func(core *Core)
}

// Core is what extensions work with.
type Core struct {
	Cluster
	Replica
	Provided
	Config *config.Store
	// IsServing says that routes are served.
	IsServing bool
	// Preparer is there when extensions start. So is ReportUnselected, which writes into the status
	// of templates why they select no node.
	Preparer         *claims.Controller
	ReportUnselected func(byTemplate map[string]string)

	parts      []Part
	routes     map[string]http.Handler
	collectors []prometheus.Collector
}

// Cluster is how objects are read and written.
type Cluster struct {
	Client kubernetes.Interface
	// Objects is a client for custom resources.
	Objects  dynamic.Interface
	Caches   *observe.Caches
	Recorder record.EventRecorder
}

// Replica says which nodes and objects this process acts for, and with how many workers.
type Replica struct {
	Owner   *shard.Owner
	Managed *lifecycle.ManagedNodes
	// Workers is how many keys of a controller are reconciled at a time.
	Workers int
}

// Provided is what extensions may give the core, which does without.
type Provided struct {
	DriverPods      devices.Presence
	Kubelets        claims.Kubelets
	Gate            claims.Gate
	DeviceHealth    claims.DeviceHealth
	KubeletRecorder claims.KubeletRecorder
	// TLS is what routes are served with, and Guard guards all but health and version, as the API server does.
	TLS   *tls.Config
	Guard func(next http.Handler) http.Handler
}

// Part is a function that runs beside the others until its context ends.
type Part struct {
	Run func(ctx context.Context)
	// Synced are done when the sidecar is ready.
	Synced []cache.DoneChecker
	// WhenReady says to run it once the sidecar is ready.
	WhenReady bool
	// Check, if there is one, returns an error while a restart may help.
	Check func() error
}

// Add adds parts to run.
func (c *Core) Add(parts ...Part) { c.parts = append(c.parts, parts...) }

// Handle serves a pattern of http.ServeMux. Like metrics, and unlike health, it is guarded.
func (c *Core) Handle(pattern string, handler http.Handler) { c.routes[pattern] = handler }

// Collect adds collectors of metrics.
func (c *Core) Collect(collectors ...prometheus.Collector) {
	c.collectors = append(c.collectors, collectors...)
}
