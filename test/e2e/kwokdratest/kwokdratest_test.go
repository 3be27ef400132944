// Package kwokdratest_test uses the library for other projects' tests as they would.
package kwokdratest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kwok-dra/kwok-dra/pkg/kwokdratest"
	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
	"github.com/kwok-dra/kwok-dra/test/internal/admin"
)

const kind = "gpu"

func gpus(t *testing.T, template string) kwokdratest.Options {
	t.Helper()
	file := filepath.Join(t.TempDir(), "gpus.yaml")
	require.NoError(t, os.WriteFile(file, []byte(template), 0o600))
	return kwokdratest.Options{Config: []string{file}, Nodes: kwokdratest.Nodes(kind, 2, map[string]string{"kind": kind})}
}

func template() string { return harness.Template("gpus", harness.Driver, kind, harness.GPUs(8)) }

func start(t *testing.T, o cluster.Options) *rest.Config {
	t.Helper()
	config, err := admin.Config(cluster.ForTest(t, o).Kubeconfig())
	require.NoError(t, err)
	return config
}

// runsPod has a Pod run that claims a device.
func runsPod(t *testing.T, config *rest.Config, namespace string) {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	api := harness.API{T: t, Client: client}
	for _, node := range []string{"gpu-0", "gpu-1"} {
		require.Empty(t, harness.Slices{API: api}.Complete(node, map[string]int{harness.Driver: 8}))
	}
	claims, pods := harness.Claims{API: api}, harness.Pods{API: api}
	claims.Namespace(namespace, harness.Driver)
	claims.CreateClaim(namespace, "c", harness.ClaimSpec(namespace))
	pods.CreatePod(namespace, harness.NewPod("p", kind, "c"))
	pods.Running(namespace, "p")
	pods.DeletePod(namespace, "p", 0)
	pods.Gone(namespace, "p")
}

// TestStart: a Pod with a claim runs on a fake node, and nothing is left for the next test.
func TestStart(t *testing.T) {
	t.Parallel()
	config := start(t, cluster.Options{Disable: []string{cluster.Kwok}})
	for round := range 2 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			runsPod(t, kwokdratest.Start(t, config, gpus(t, template())), fmt.Sprintf("round-%d", round))
		})
		client, err := kubernetes.NewForConfig(config)
		require.NoError(t, err)
		slices, err := client.ResourceV1().ResourceSlices().List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.Empty(t, slices.Items)
		nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.Empty(t, nodes.Items)
	}
}

// TestWithKwok: the kwok that is there plays nodes and Pods.
func TestWithKwok(t *testing.T) {
	t.Parallel()
	config := start(t, cluster.Options{Config: harness.FastStages(t)})
	options := gpus(t, template())
	options.WithKwok = true
	runsPod(t, kwokdratest.Start(t, config, options), "pods")
}

// failing is a test that may fail without its parent.
type failing struct {
	*testing.T

	said chan string
}

func (f failing) Fatalf(format string, args ...any) {
	f.said <- fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// TestStartFails: what is wrong is said in the words of its cause.
func TestStartFails(t *testing.T) {
	t.Parallel()
	config := start(t, cluster.Options{Disable: []string{cluster.Kwok, cluster.Scheduler, cluster.ControllerManager}})
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	const others = "others"
	_, err = client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: others}}, metav1.CreateOptions{})
	require.NoError(t, err)
	never := harness.WithSpec(template(), "publishWhen: {matchLabels: {never: there}}")
	for name, test := range map[string]struct {
		template string
		change   func(o *kwokdratest.Options)
		want     string
	}{
		"bad template":     {"kind: ResourcePoolTemplate\napiVersion: dra.kwok.x-k8s.io/v1alpha1\nmetadata: {name: t}\nspec: {devces: []}", nil, "gpus.yaml, document 1: ResourcePoolTemplate \"t\": spec.devces: Unknown field: did you mean devices?"},
		"bad Stage":        {template(), func(o *kwokdratest.Options) { o.Stages = []string{"{apiVersion: v1, kind: Pod}"} }, "decode Stages[0]: it is a Pod of v1: must be a Stage of kwok.x-k8s.io/v1alpha1"},
		"never published":  {never, func(o *kwokdratest.Options) { o.Timeout = 20 * time.Second }, "wait for node gpu-0: after 20s driver gpu.example.com has 0 of 8 devices there: does publishWhen match the node?"},
		"nobody plays":     {template(), func(o *kwokdratest.Options) { o.WithKwok, o.Timeout = true, 5*time.Second }, "wait for node gpu-0: after 5s it is not Ready"},
		"node twice":       {template(), func(o *kwokdratest.Options) { o.Nodes = append(o.Nodes, o.Nodes[0]) }, `nodes "gpu-0" already exists`},
		"node of others":   {template(), func(o *kwokdratest.Options) { o.Nodes[0].Name = others }, `nodes "others" already exists`},
		"no template":      {template(), func(o *kwokdratest.Options) { o.Config = nil }, "there are no templates: give Config, or set EnableCRDs"},
		"no such template": {template(), func(o *kwokdratest.Options) { o.Config = []string{"missing.yaml"} }, "missing.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			options := gpus(t, test.template)
			if test.change != nil {
				test.change(&options)
			}
			said := make(chan string, 1)
			go func() {
				defer close(said)
				kwokdratest.Start(failing{t, said}, config, options)
			}()
			require.Contains(t, <-said, test.want)
		})
	}
	_, err = client.CoreV1().Nodes().Get(t.Context(), others, metav1.GetOptions{})
	require.NoError(t, err, "a node of others stays")
}
