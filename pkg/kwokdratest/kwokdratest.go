// Package kwokdratest gives Go tests fake nodes with DRA devices, on any API server: that of
// controller-runtime's envtest, of a cluster of this project's test/cluster, or of a real
// cluster. Kwok and kwok-dra run in the process of the test, so nothing else is needed.
//
//	config := kwokdratest.Start(t, environment.Config, kwokdratest.Options{
//		Config: []string{"gpus.yaml"},
//		Nodes:  kwokdratest.Nodes("gpu", 3, map[string]string{"accelerator": "gpu"}),
//	})
//
// Its maturity is beta; docs/reference/stability.md says what may change.
package kwokdratest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/kwok-dra/kwok-dra/internal/app"
	"github.com/kwok-dra/kwok-dra/internal/extensions"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/internal/util/kubeconfig"
	"github.com/kwok-dra/kwok-dra/pkg/templatenode"
)

// Options say what to start.
type Options struct {
	// Config are files and folders with ResourcePoolTemplates and KwokDRAConfigurations, as
	// for --config of kwok-dra. Where it is empty, EnableCRDs must be set.
	Config []string
	// EnableCRDs reads custom resources too, as --enable-crds of kwok-dra does. Start does not
	// wait for what they publish.
	EnableCRDs bool
	// Nodes are created, with the annotation by which kwok and kwok-dra know fake nodes, and
	// deleted at the end of the test. Start waits for them. Optional.
	Nodes []*corev1.Node
	// Stages are kwok's Stages as YAML, one each. Optional, default are kwok's fast ones:
	// nodes are Ready at once, Pods run once their claims are prepared, and Pods of Jobs
	// succeed.
	Stages []string
	// WithKwok says that a kwok controller runs for the API server, so that none is started.
	// Its Stages must have pod-ready of kwok-dra's stages/pod/fast in place of kwok's own.
	WithKwok bool
	// Timeout is how long Start waits. Optional, default is a minute.
	Timeout time.Duration
}

var errNoConfig = errors.New("there are no templates: give Config, or set EnableCRDs")

// Nodes makes nodes that are alike: their names are the prefix and a number.
func Nodes(prefix string, count int, labels map[string]string) []*corev1.Node {
	nodes := make([]*corev1.Node, count)
	for i := range nodes {
		name := fmt.Sprintf("%s-%d", prefix, i)
		of := maps.Clone(labels)
		if of == nil {
			of = map[string]string{}
		}
		of[corev1.LabelHostname] = name
		nodes[i] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: of}}
	}
	return nodes
}

// Start runs kwok and kwok-dra until the test ends, and makes nodes. It returns when the
// nodes are Ready and all slices that they are to have are published, with the configuration
// of the API server, for clients. What goes wrong fails the test at once.
//
// The user of the configuration needs the rights of kwok and of kwok-dra; that of envtest has
// them. Two that manage the same nodes would disturb each other, so there can be one at a
// time for each API server.
func Start(t testing.TB, config *rest.Config, o Options) *rest.Config {
	t.Helper()
	f, err := newFleet(t, config, o)
	if err == nil {
		err = f.start()
	}
	if err != nil {
		t.Fatalf("start fake nodes: %v", err)
	}
	return rest.CopyConfig(config)
}

// fleet is what runs for a test.
type fleet struct {
	options    Options
	client     kubernetes.Interface
	kubeconfig string
	renderer   *templatenode.Renderer
	t          testing.TB
	output     *output
	// nodes are the names of those that were created.
	nodes   []string
	running sync.WaitGroup
	// failed has why kwok-dra ended, if it has.
	failed chan error
}

func newFleet(t testing.TB, config *rest.Config, o Options) (*fleet, error) {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	templates, err := templatenode.ReadTemplates(t.Context(), o.Config...)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(t.TempDir(), "kubeconfig") // which is what kwok takes
	if err := kubeconfig.Write(file, config, ""); err != nil {
		return nil, err
	}
	return &fleet{
		options: o, client: client, kubeconfig: file, renderer: templatenode.New(client, templates),
		t: t, output: &output{to: t.Output()}, failed: make(chan error, 1),
	}, nil
}

// start starts all, and waits for the nodes.
func (f *fleet) start() error {
	ctx, stop := context.WithCancel(context.WithoutCancel(f.t.Context())) // nodes are deleted at the end
	f.t.Cleanup(func() {
		f.removeNodes(ctx)
		stop()
		f.running.Wait()
		f.output.end()
		f.removeLeases(context.WithoutCancel(ctx))
		select {
		case err := <-f.failed:
			f.t.Error(err)
		default:
		}
	})
	ctx = klog.NewContext(ctx, textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(f.output))))
	if err := f.startSidecar(ctx); err != nil {
		return err
	}
	if !f.options.WithKwok {
		if err := f.startKwok(ctx); err != nil {
			return err
		}
	}
	for _, node := range f.options.Nodes {
		if err := f.create(ctx, node); err != nil {
			return err
		}
	}
	return f.wait(ctx)
}

// startSidecar runs kwok-dra as its command does, but for the page and the metrics.
func (f *fleet) startSidecar(ctx context.Context) error {
	options := app.NewOptions(extensions.All()...) //nolint:contextcheck // what a node load watches ends with its node
	options.Kubeconfig, options.Config, options.EnableCRDs = f.kubeconfig, f.options.Config, f.options.EnableCRDs
	options.ServerAddress = ""
	if len(options.Config) == 0 && !options.EnableCRDs {
		return errNoConfig
	}
	if err := options.Complete(); err != nil {
		return fmt.Errorf("start kwok-dra: %w", err)
	}
	f.running.Go(func() {
		if err := app.Run(ctx, options); err != nil {
			f.failed <- fmt.Errorf("run kwok-dra: %w", err)
		}
	})
	return nil
}

func (f *fleet) create(ctx context.Context, given *corev1.Node) error {
	node := given.DeepCopy()
	metav1.SetMetaDataAnnotation(&node.ObjectMeta, lifecycle.NodeAnnotation, lifecycle.FakeValue)
	if _, err := f.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create node: %w", err)
	}
	f.nodes = append(f.nodes, node.Name)
	return nil
}
