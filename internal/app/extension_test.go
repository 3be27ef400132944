package app

import (
	"context"
	"net/http"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/devices"
)

// TestExtension gives all that an extension can, and is given what the core has.
func TestExtension(t *testing.T) {
	t.Parallel()
	var text string
	var ran atomic.Bool
	gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: "a_gauge"})
	provided := devices.UnknownPresence{}
	extension := Extension{
		FlagsAfter: "config-map",
		AddFlags: func(flags *pflag.FlagSet) {
			flags.StringVar(&text, "first", "", "")
			flags.StringVar(&text, "second", "", "")
		},
		SourceHint: "or --first",
		Complete: func(options *Options) error {
			options.Kinds = append(options.Kinds, config.Kind{Name: "Other"})
			_, err := options.AddConfigMap("first", text)
			return err
		},
		Provide: func(core *Core) { core.DriverPods = provided },
		Start: func(core *Core) {
			require.NotNil(t, core.Preparer)
			core.ReportUnselected(nil)
			require.Equal(t, provided, core.DriverPods)
			core.Handle("/", http.NotFoundHandler())
			core.Collect(gauge)
			core.Add(Part{Run: func(context.Context) { ran.Store(true) }, WhenReady: true})
		},
	}
	o := NewOptions(extension)
	flags := o.Flags()
	require.NoError(t, flags.Parse([]string{"--enable-crds", "--first", "a/b", "--leader-elect-resource-namespace", "kube-system", "--server-address="}))
	var names []string
	flags.VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	require.Equal(t, []string{"kubeconfig", "config", "config-map", "first", "second", "enable-crds"}, names[:6])
	require.NoError(t, o.Complete())
	require.Equal(t, []types.NamespacedName{{Namespace: "a", Name: "b"}}, o.configMaps)
	var kinds []string
	for _, kind := range o.Kinds {
		kinds = append(kinds, kind.Name)
	}
	require.Equal(t, []string{"ResourcePoolTemplate", "KwokDRAConfiguration", "Other"}, kinds)

	o.Kinds = nil // which would need a client
	synctest.Test(t, func(t *testing.T) {
		store, err := newStore(t.Context(), o)
		require.NoError(t, err)
		require.NoError(t, store.Replace(config.ConfigMapCarrier(o.configMaps[0]), &config.Documents{}))
		owner, err := newOwner(o, nil)
		require.NoError(t, err)
		events := record.NewBroadcaster()
		defer events.Shutdown()
		s := newSidecar(o, fake.NewClientset(), nil, store, owner, events)
		require.Contains(t, s.collectors, gauge)
		require.Contains(t, s.routes, "/")
		ctx, cancel := context.WithCancel(quiet(t))
		ended := make(chan error)
		go func() { ended <- s.runParts(ctx) }()
		time.Sleep(time.Minute)
		require.True(t, ran.Load())
		cancel()
		require.NoError(t, <-ended)
	})
}

// TestExtensionsOfOneConfigMap: two formats cannot be in one.
func TestExtensionsOfOneConfigMap(t *testing.T) {
	t.Parallel()
	o := NewOptions(Extension{SourceHint: "or --first", Complete: func(options *Options) error {
		_, err := options.AddConfigMap("first", "a/b")
		return err
	}})
	o.ConfigMap = "a/b"
	require.ErrorContains(t, o.Complete(), `parse --first "a/b": --config-map is the same`)
	flags := NewOptions(Extension{SourceHint: "or --first"})
	require.EqualError(t, flags.Complete(), "nothing to publish: give --config FILE, --config-map NAMESPACE/NAME or --enable-crds; or --first")
}

// TestCoreHasNoExtension holds what the core is linked of.
func TestCoreHasNoExtension(t *testing.T) {
	t.Parallel()
	var problems strings.Builder
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", ".")
	list.Stderr = &problems
	listed, err := list.Output()
	require.NoError(t, err, "%s", &problems)
	of := map[string]bool{}
	for dependency := range strings.SplitSeq(string(listed), "\n") {
		of[dependency] = true
	}
	require.True(t, of["github.com/kwok-dra/kwok-dra/internal/claims"])
	for dependency := range of {
		require.NotContains(t, dependency, "kwok-dra/internal/extensions")
	}
	for _, needless := range []string{
		"google.golang.org/grpc", "k8s.io/dynamic-resource-allocation/cel", "k8s.io/dynamic-resource-allocation/structured",
		"k8s.io/kubelet/pkg/apis/dra/v1", "k8s.io/kube-openapi/pkg/validation/validate",
	} {
		require.NotContains(t, of, needless)
	}
}
