package app

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/controller/installation"
	"github.com/kwok-dra/kwok-dra/internal/controller/shard"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/internal/util/version"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// Options are the sidecar's command line options.
type Options struct {
	Kubeconfig    string
	Config        []string
	ConfigMap     string
	EnableCRDs    bool
	KubeAPIQPS    float32
	Workers       int
	ServerAddress string
	Managed       lifecycle.ManagedNodes
	Profiling     bool
	Version       bool

	// ShardMode is how replicas share the work. LeaderNamespace and LeaderName are
	// those of the Lease that their leader holds.
	ShardMode       shard.Mode
	LeaderNamespace string
	LeaderName      string
	// Installation is the name of the installation, by which it knows its own objects.
	Installation string
	// Host is the name of the Pod, by which the leases of its kwok begin. It has no
	// flag; default: the name of the machine, which in a Pod is the Pod's.
	Host string

	// Sources are found by Complete.
	Sources

	extensions []Extension
	configMap  *types.NamespacedName
}

// Sources are where configuration is, and what is published.
type Sources struct {
	// Kinds are the kinds of custom resources to be read.
	Kinds []config.Kind
	// IsPublishing says that an extension publishes.
	IsPublishing bool
	// StartLog are keys and values of the log when the sidecar starts.
	StartLog []any

	configMaps []types.NamespacedName
}

// AddConfigMap reads the ConfigMap that a flag names, if it names one.
func (s *Sources) AddConfigMap(flag, text string) (*types.NamespacedName, error) {
	if text == "" {
		return nil, nil
	}
	namespace, name, ok := strings.Cut(text, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return nil, fmt.Errorf("parse --%s %q: must be NAMESPACE/NAME", flag, text)
	}
	named := types.NamespacedName{Namespace: namespace, Name: name}
	if slices.Contains(s.configMaps, named) {
		return nil, fmt.Errorf("parse --%s %q: --config-map is the same: the two have different formats", flag, text)
	}
	s.configMaps = append(s.configMaps, named)
	return &named, nil
}

// NewOptions returns the defaults of a sidecar with extensions.
func NewOptions(extensions ...Extension) *Options {
	return &Options{
		KubeAPIQPS:    -1,
		Workers:       16,
		ServerAddress: ":10246",
		ShardMode:     shard.None,
		LeaderName:    v1alpha1.ManagedByValue,
		extensions:    extensions,
	}
}

const usage = `kwok-dra publishes ResourceSlices for the fake nodes of KWOK, and prepares the
ResourceClaims of their Pods. It runs beside the kwok controller.

Usage:
  kwok-dra (--config FILE | --config-map NAMESPACE/NAME | --enable-crds) [options]

Example:
  kwok-dra --kubeconfig ~/.kube/config --enable-crds --server-address 127.0.0.1:10246

Options:
`

// Flags returns the options as flags, those of kwok under kwok's names.
func (o *Options) Flags() *pflag.FlagSet {
	flags := pflag.NewFlagSet("kwok-dra", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "kubeconfig file; default: $KUBECONFIG, ~/.kube/config, or the ServiceAccount of the Pod")
	flags.StringArrayVar(&o.Config, "config", o.Config, "file of ResourcePoolTemplates and KwokDRAConfigurations, read once at the start")
	flags.StringVar(&o.ConfigMap, "config-map", o.ConfigMap, "ConfigMap of ResourcePoolTemplates and KwokDRAConfigurations, as NAMESPACE/NAME, watched live")
	flags.BoolVar(&o.EnableCRDs, "enable-crds", o.EnableCRDs, "read ResourcePoolTemplates and KwokDRAConfigurations from custom resources too, watched live")
	flags.BoolVar(&o.Managed.All, "manage-all-nodes", o.Managed.All, "act for all nodes; this and the next three options have the names and the meaning of kwok's own")
	flags.StringVar(&o.Managed.Annotations, "manage-nodes-with-annotation-selector", o.Managed.Annotations,
		"act for nodes with these annotations; with the next option too, for nodes that match both; default without any of these four options: "+lifecycle.DefaultAnnotationSelector)
	flags.StringVar(&o.Managed.Labels, "manage-nodes-with-label-selector", o.Managed.Labels, "act for nodes with these labels")
	flags.StringVar(&o.Managed.Single, "manage-single-node", o.Managed.Single, "act for the node of this name")
	flags.Float32Var(&o.KubeAPIQPS, "kube-api-qps", o.KubeAPIQPS, "limit of requests to the API server per second; a negative number means no limit")
	flags.IntVar(&o.Workers, "workers", o.Workers, "number of nodes that are processed at the same time, and of Pods, and of claims")
	flags.StringVar((*string)(&o.ShardMode), "shard-mode", string(o.ShardMode),
		"how several replicas share the work. none: there is one replica; leader: one replica acts, the others stand by; lease: each acts for the nodes whose lease is held by the kwok in its Pod")
	flags.StringVar(&o.LeaderNamespace, "leader-elect-resource-namespace", o.LeaderNamespace, "namespace of the Lease that elects the leader; default: that of the Pod")
	flags.StringVar(&o.LeaderName, "leader-elect-resource-name", o.LeaderName, "name of that Lease; give all replicas the same")
	flags.StringVar(&o.Installation, "installation", o.Installation,
		"name of this installation, which it records on the objects that it makes; it leaves those of other installations alone; default: namespace and name of the Lease above, and the choice of nodes if it is not the default")
	flags.StringVar(&o.ServerAddress, "server-address", o.ServerAddress, "address that serves the page, /api/devices, /healthz, /readyz, /version and /metrics; empty: serve nothing")
	flags.BoolVar(&o.Profiling, "profiling", o.Profiling, "serve Go's profiles at /debug/pprof/")
	logging := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(logging)
	verbosity := pflag.PFlagFromGoFlag(logging.Lookup("v"))
	verbosity.Usage = "verbosity of the log. 0: start, stop and configuration; 2: the slices of each node and the claims of each Pod too"
	flags.AddFlag(verbosity)
	flags.BoolVar(&o.Version, "version", o.Version, "print the version and exit")
	all := pflag.NewFlagSet("kwok-dra", pflag.ContinueOnError)
	all.SortFlags = false
	flags.VisitAll(func(flag *pflag.Flag) {
		all.AddFlag(flag)
		for _, extension := range o.extensions {
			if extension.AddFlags != nil && extension.FlagsAfter == flag.Name {
				extension.AddFlags(all)
			}
		}
	})
	all.Usage = func() { _, _ = fmt.Fprint(all.Output(), usage, all.FlagUsages()) }
	return all
}

// Complete finds the sources of configuration, checks the options against each other and fills in the rest.
func (o *Options) Complete() error {
	o.Sources = Sources{}
	var err error
	if o.configMap, err = o.AddConfigMap("config-map", o.ConfigMap); err != nil {
		return err
	}
	if o.EnableCRDs {
		o.Kinds = config.OwnKinds()
	}
	hints := []string{"nothing to publish: give --config FILE, --config-map NAMESPACE/NAME or --enable-crds"}
	for _, extension := range o.extensions {
		if extension.Complete != nil {
			if err := extension.Complete(o); err != nil {
				return err
			}
		}
		if extension.SourceHint != "" {
			hints = append(hints, extension.SourceHint)
		}
	}
	_, _, addressErr := net.SplitHostPort(o.ServerAddress)
	_, modeErr := shard.ParseMode(string(o.ShardMode))
	switch {
	case len(o.Config)+len(o.configMaps)+len(o.Kinds) == 0 && !o.IsPublishing:
		return errors.New(strings.Join(hints, "; "))
	case o.Workers < 1:
		return fmt.Errorf("parse --workers %d: must be at least 1", o.Workers)
	case o.KubeAPIQPS == 0:
		return errors.New("parse --kube-api-qps 0: client-go reads that as its default of 5; give a limit, or a negative number for none")
	case addressErr != nil && o.ServerAddress != "":
		return fmt.Errorf("parse --server-address %q: must be HOST:PORT or :PORT, for example :10246", o.ServerAddress)
	case modeErr != nil:
		return fmt.Errorf("parse --shard-mode %q: %w", o.ShardMode, modeErr)
	case o.Installation != "" && len(validation.IsDNS1123Subdomain(o.Installation)) > 0:
		return fmt.Errorf("parse --installation %q: must be lower case letters, digits, - and ., as the name of an object", o.Installation)
	}
	return o.Managed.Complete()
}

// clientConfig finds the API server as kubectl does, and in a Pod its own.
func (o *Options) clientConfig() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil)
}

// RESTConfig is how the API server is reached.
func (o *Options) RESTConfig() (*rest.Config, error) {
	found, err := o.clientConfig().ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("find the API server: there is neither a kubeconfig nor a ServiceAccount of a Pod: give --kubeconfig FILE or set KUBECONFIG")
	}
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w: correct --kubeconfig", err)
	}
	// client-go's default of 5 requests per second would take hours for a fleet, and protobuf halves the cost of decoding.
	found.QPS, found.Burst = o.KubeAPIQPS, max(1, int(2*o.KubeAPIQPS))
	found.UserAgent = v1alpha1.ManagedByValue + "/" + version.Get()
	found.ContentType = "application/vnd.kubernetes.protobuf"
	found.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	found.Wrap(func(next http.RoundTripper) http.RoundTripper { return reconnecting{next} })
	return found, nil
}

// newOwner makes the Owner, which decides which nodes this replica acts for.
func newOwner(o *Options, found *rest.Config) (*shard.Owner, error) {
	client := o.clientConfig()
	lease := types.NamespacedName{Namespace: o.LeaderNamespace, Name: o.LeaderName}
	if lease.Namespace == "" {
		var err error
		if lease.Namespace, _, err = client.Namespace(); err != nil {
			return nil, fmt.Errorf("find the namespace of this Pod, or give --leader-elect-resource-namespace: %w", err)
		}
	}
	kubeconfig, err := client.RawConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	options := shard.Options{Mode: o.ShardMode, Installation: installation.ID(o.Installation), Host: o.Host, Namespace: lease.Namespace, Name: lease.Name}
	if options.Installation == "" {
		options.Installation = installation.New(lease, len(kubeconfig.Contexts) == 0, o.Managed.Identity())
	}
	if o.ShardMode == shard.None {
		return shard.New(options), nil
	}
	if options.Host == "" {
		if options.Host, err = os.Hostname(); err != nil {
			return nil, fmt.Errorf("find the name of this Pod: %w", err)
		}
	}
	// The client is one for leases only: no other request can hold up an election.
	options.Client, err = kubernetes.NewForConfig(rest.AddUserAgent(rest.CopyConfig(found), "leader-election"))
	return shard.New(options), err
}
