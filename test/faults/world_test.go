package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/cluster/build"
	"github.com/kwok-dra/kwok-dra/test/sidecar"
)

const (
	// namespace is where everything is that has one.
	namespace = "faults"
	// stubbornness is how long an operation of the workload is tried, while servers
	// are stopped and started.
	stubbornness = stuck
	// tryLimit bounds one try of an operation: a server that has lost the one behind
	// it keeps a request waiting for much longer.
	tryLimit = 20 * time.Second
	// stuck is how long something takes that will never end. No test tells by it
	// whether anything is fast: however busy the machine, what works takes less.
	stuck = 5 * time.Minute
)

// world is a cluster with a proxy in front of its API server.
type world struct {
	cluster *cluster.Cluster
	// client goes past the proxy.
	client kubernetes.Interface
	proxy  *proxy
	// kubeconfig is the sidecar's, through the proxy.
	kubeconfig string
	etcd       string

	mu       sync.Mutex
	sidecars []*sidecar.Process
	// logs are those of all sidecars since the last reset.
	logs []string
}

// newWorld starts a cluster with what all seeds use.
func newWorld(t testing.TB) (*world, error) {
	stages, err := fastStages(t.Context())
	if err != nil {
		return nil, err
	}
	if _, err := program(); err != nil { // which takes a while, and not in the first seed's time
		return nil, err
	}
	options := cluster.Options{
		Config: stages,
		ExtraArgs: map[string][]string{
			cluster.Scheduler:         {"kube-api-qps=200", "kube-api-burst=400"},
			cluster.ControllerManager: {"kube-api-qps=200", "kube-api-burst=400"},
		},
	}
	versions, err := build.Versions{}.Resolve()
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(versions.Kubernetes, "v1.34.") || strings.HasPrefix(versions.Kubernetes, "v1.35.") {
		options.FeatureGates = map[string]bool{"DRADeviceTaints": true} // which later releases have on
		options.RuntimeConfig = map[string]bool{"resource.k8s.io/v1alpha3": true}
	}
	c := cluster.ForTest(t, options)
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig of the cluster: %w", err)
	}
	config.QPS = -1
	config.Timeout = stuck
	w := &world{cluster: c}
	if w.client, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	own, err := sidecar.ServiceAccount(t.Context(), c)
	if err != nil {
		return nil, err
	}
	if w.proxy, err = newProxy(t, config, w.touch); err != nil {
		return nil, err
	}
	if w.kubeconfig, err = w.proxy.kubeconfig(own, t.TempDir()); err != nil {
		return nil, err
	}
	if w.etcd, err = etcdAddress(c); err != nil {
		return nil, err
	}
	t.Cleanup(func() { w.stopAll(t) })
	return w, w.furnish(t.Context())
}

// fastStages are kwok's own fast Stages, with the project's in place of pod-ready.
func fastStages(ctx context.Context) ([]string, error) {
	kwok, err := sidecar.ModuleDir(ctx, "sigs.k8s.io/kwok")
	if err != nil {
		return nil, err
	}
	files := []string{
		filepath.Join(kwok, "kustomize/stage/node/fast/node-initialize.yaml"),
		filepath.Join(kwok, "kustomize/stage/pod/fast/pod-complete.yaml"),
		filepath.Join(kwok, "kustomize/stage/pod/fast/pod-delete.yaml"),
		filepath.Join(sidecar.Root(), "stages/pod/fast/pod-ready.yaml"),
	}
	for _, file := range files {
		if _, err := os.Stat(file); err != nil {
			return nil, fmt.Errorf("find Stage: %w", err)
		}
	}
	return files, nil
}

// claimTemplates are the ResourceClaimTemplates by the classes they ask for.
var claimTemplates = map[string][]string{"gpu": {"gpu"}, "both": {"gpu", "nic"}, "fabric": {"fabric"}}

// furnish makes the namespace, the classes and the claim templates.
func (w *world) furnish(ctx context.Context) error {
	_, err := w.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create namespace: %w", err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if _, err := w.client.CoreV1().ServiceAccounts(namespace).Create(ctx, account, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create ServiceAccount: %w", err)
	}
	for name, driver := range map[string]string{"gpu": gpuDriver, "nic": nicDriver, "fabric": fabricDriver} {
		class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.DeviceClassSpec{
			Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", driver)}}},
		}}
		if _, err := w.client.ResourceV1().DeviceClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create DeviceClass %s: %w", name, err)
		}
	}
	for name, classes := range claimTemplates {
		template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: claimSpec(classes)}}
		if _, err := w.client.ResourceV1().ResourceClaimTemplates(namespace).Create(ctx, template, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create ResourceClaimTemplate %s: %w", name, err)
		}
	}
	return nil
}

func claimSpec(classes []string) resourcev1.ResourceClaimSpec {
	spec := resourcev1.ResourceClaimSpec{}
	for _, class := range classes {
		spec.Devices.Requests = append(spec.Devices.Requests, resourcev1.DeviceRequest{
			Name: class, Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class},
		})
	}
	return spec
}

// touch changes an object in another client's place.
func (w *world) touch(ctx context.Context, path string) error {
	path = strings.TrimSuffix(path, "/status")
	patch := fmt.Appendf(nil, `{"metadata": {"annotations": {"example.com/touched": %q}}}`, time.Now().Format(time.RFC3339Nano))
	return w.client.CoreV1().RESTClient().Patch(types.MergePatchType).AbsPath(path).Body(patch).Do(ctx).Error()
}

// persist tries until it works. That something is there already, or no more, is
// what an earlier try may have done.
func (w *world) persist(ctx context.Context, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, stubbornness)
	defer cancel()
	for {
		err := try(ctx, do)
		if err == nil || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
			return nil
		}
		if apierrors.IsInvalid(err) || ctx.Err() != nil {
			return err
		}
		sleep(ctx, 50*time.Millisecond)
	}
}

func try(ctx context.Context, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, tryLimit)
	defer cancel()
	return do(ctx)
}

// launch starts one more sidecar.
func (w *world) launch() (*sidecar.Process, error) {
	binary, err := program()
	if err != nil {
		return nil, err
	}
	process, err := sidecar.LaunchProgram(w.cluster, binary, "--kubeconfig", w.kubeconfig, "--config-map", namespace+"/"+configMap)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sidecars = append(w.sidecars, process)
	w.logs = append(w.logs, process.Log)
	return process, nil
}

// replace kills a sidecar, and starts another one.
func (w *world) replace(number int) error {
	w.mu.Lock()
	if len(w.sidecars) == 0 {
		w.mu.Unlock()
		return errors.New("there is no sidecar to kill")
	}
	number %= len(w.sidecars)
	victim := w.sidecars[number]
	w.sidecars = slices.Delete(w.sidecars, number, number+1)
	w.mu.Unlock()
	if err := victim.Kill(); err != nil {
		return err
	}
	_, err := w.launch()
	return err
}

// running are the sidecars that have been started and not killed.
func (w *world) running() []*sidecar.Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.sidecars)
}

// launched is how many sidecars were started since takeAll.
func (w *world) launched() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.logs)
}

// takeAll hands over all sidecars and the logs.
func (w *world) takeAll() (processes []*sidecar.Process, logs []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	processes, logs = w.sidecars, w.logs
	w.sidecars, w.logs = nil, nil
	return processes, logs
}

func (w *world) stopAll(t testing.TB) {
	processes, _ := w.takeAll()
	for _, process := range processes {
		if err := process.Kill(); err != nil {
			t.Error(err)
		}
	}
}

// look reads all that the oracle looks at.
func (w *world) look(ctx context.Context, all templates) (*state, error) {
	s := &state{templates: all, nodes: map[string]*corev1.Node{}, pods: map[types.UID]*corev1.Pod{}}
	nodes, err := w.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	for i := range nodes.Items {
		s.nodes[nodes.Items[i].Name] = &nodes.Items[i]
	}
	pods, err := w.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	for i := range pods.Items {
		s.pods[pods.Items[i].UID] = &pods.Items[i]
	}
	claims, err := w.client.ResourceV1().ResourceClaims(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list claims: %w", err)
	}
	s.claims = claims.Items
	published, err := w.client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list slices: %w", err)
	}
	s.slices = published.Items
	return s, nil
}
