package faults

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/cluster/build"
	"github.com/kwok-dra/kwok-dra/test/internal/admin"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

const (
	// namespace is where everything is that has one.
	namespace = "faults"
	// stubbornness is how long an operation of the workload is tried, while servers
	// are stopped and started.
	stubbornness = stuck
	// tryLimit bounds the first try of an operation, and each further one by as much
	// again: a server that has lost the one behind it keeps a request waiting for long.
	tryLimit = 20 * time.Second
	// stuck is how long something takes that will never end. No test tells by it
	// whether anything is fast: however busy the machine, what works takes less.
	stuck = 10 * time.Minute
)

// world is a cluster with places for sidecars, each behind a proxy of its own.
type world struct {
	clients
	replicas
	etcd   etcd
	ledger ledger
}

// clients go past the proxies.
type clients struct {
	config  *rest.Config
	client  kubernetes.Interface
	dynamic dynamic.Interface
}

// newWorld starts a cluster with what all seeds use.
func newWorld(t testing.TB) (*world, error) {
	stages, err := fastStages(t.Context(), t.TempDir())
	if err != nil {
		return nil, err
	}
	// These builds take a while, and not in the first seed's time.
	if _, err := program(); err != nil {
		return nil, err
	}
	if _, err := sidecar.Programs(); err != nil {
		return nil, err
	}
	options, err := worldOptions(stages)
	if err != nil {
		return nil, err
	}
	c := cluster.ForTest(t, options)
	w := &world{replicas: replicas{cluster: c, file: filepath.Join(t.TempDir(), "kwok-dra.yaml")}}
	if w.clients, err = connect(c); err != nil {
		return nil, err
	}
	own, err := sidecar.ServiceAccount(t.Context(), c)
	if err != nil {
		return nil, err
	}
	for i := range mostReplicas {
		one, err := w.newReplica(t, i, own)
		if err != nil {
			return nil, err
		}
		w.all = append(w.all, one)
	}
	w.arrange(setup{replicas: 1, mode: modeNone})
	if err := w.writeFile(content{templates: anchors()}); err != nil {
		return nil, err
	}
	if w.etcd, err = etcdAddress(c); err != nil {
		return nil, err
	}
	t.Cleanup(func() { w.stopAll(t) })
	if err := w.define(t.Context()); err != nil {
		return nil, err
	}
	view := filepath.Join(sidecar.Root(), "kustomize", "container-view")
	for _, rules := range []string{"role.yaml", "role_binding.yaml"} {
		if _, err := c.Kubectl(t.Context(), "apply", "-f", filepath.Join(view, rules)); err != nil {
			return nil, err
		}
	}
	return w, w.furnish(t.Context())
}

// worldOptions are those of a cluster in which leases of nodes are nobody's but the
// workload's.
func worldOptions(stages []string) (cluster.Options, error) {
	options := cluster.Options{
		Config: stages, EnableCRDs: []string{"Logs", "Exec"},
		ExtraArgs: map[string][]string{
			cluster.Scheduler: {"kube-api-qps=200", "kube-api-burst=400"},
			// It writes claims that Pods share as fast as it may (kubernetes#141274), so it may
			// no more than by default.
			cluster.ControllerManager: {"kube-api-qps=20", "kube-api-burst=30", "node-monitor-grace-period=24h"},
			cluster.Kwok:              {"node-lease-duration-seconds=0"},
		},
	}
	versions, err := build.Versions{}.Resolve()
	if err != nil {
		return options, err
	}
	if strings.HasPrefix(versions.Kubernetes, "v1.34.") || strings.HasPrefix(versions.Kubernetes, "v1.35.") {
		options.FeatureGates = map[string]bool{"DRADeviceTaints": true, "ResourceHealthStatus": true} // which later releases have on
		options.RuntimeConfig = map[string]bool{"resource.k8s.io/v1alpha3": true}
	}
	return options, nil
}

// connect makes the clients that go past the proxies.
func connect(c *cluster.Cluster) (clients, error) {
	config, err := admin.Config(c.Kubeconfig())
	if err != nil {
		return clients{}, err
	}
	config.Timeout = stuck
	typed := rest.CopyConfig(config)
	typed.ContentType = runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(typed)
	if err != nil {
		return clients{}, fmt.Errorf("make client: %w", err)
	}
	custom, err := dynamic.NewForConfig(config)
	if err != nil {
		return clients{}, fmt.Errorf("make client for custom resources: %w", err)
	}
	return clients{config, client, custom}, nil
}

// touch changes an object in another client's place.
func (c clients) touch(ctx context.Context, path string) error {
	path = strings.TrimSuffix(path, "/status")
	patch := fmt.Appendf(nil, `{"metadata": {"annotations": {"example.com/touched": %q}}}`, time.Now().Format(time.RFC3339Nano))
	return c.client.CoreV1().RESTClient().Patch(types.MergePatchType).AbsPath(path).Body(patch).Do(ctx).Error()
}

func (c clients) createNode(ctx context.Context, name string, labels map[string]string) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: map[string]string{fakeAnnotation: "fake"}}}
	_, err := c.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	return err
}

func (c clients) patchNode(ctx context.Context, name, patch string) error {
	_, err := c.client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// ready reports an error where the API server does not serve.
func (c clients) ready(ctx context.Context) error {
	return c.client.CoreV1().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

// persist tries until it works. That something is there already, or no more, is
// what an earlier try may have done.
func persist(ctx context.Context, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, stubbornness)
	defer cancel()
	for limit := tryLimit; ; limit += tryLimit {
		err := try(ctx, limit, do)
		if err == nil || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
			return nil
		}
		if apierrors.IsInvalid(err) || ctx.Err() != nil {
			return err
		}
		sleep(ctx, 50*time.Millisecond)
	}
}

func try(ctx context.Context, limit time.Duration, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return do(ctx)
}

// list reads all that the oracle looks at but for events.
func (c clients) list(ctx context.Context) (found, error) {
	f := found{nodes: map[string]*corev1.Node{}, pods: map[types.UID]*corev1.Pod{}}
	nodes, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return f, fmt.Errorf("list nodes: %w", err)
	}
	for i := range nodes.Items {
		f.nodes[nodes.Items[i].Name] = &nodes.Items[i]
	}
	pods, err := c.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return f, fmt.Errorf("list pods: %w", err)
	}
	for i := range pods.Items {
		f.pods[pods.Items[i].UID] = &pods.Items[i]
	}
	claims, err := c.client.ResourceV1().ResourceClaims(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return f, fmt.Errorf("list claims: %w", err)
	}
	f.claims = claims.Items
	published, err := c.client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{})
	if err != nil {
		return f, fmt.Errorf("list slices: %w", err)
	}
	f.slices = published.Items
	return f, nil
}

// look reads all that the oracle looks at.
func (w *world) look(ctx context.Context, all templates) (*state, error) {
	there, err := w.list(ctx)
	if err != nil {
		return nil, err
	}
	s := &state{inForce: inForce{templates: all, selection: w.setup.selection}, found: there}
	return s, w.explain(ctx, s)
}
