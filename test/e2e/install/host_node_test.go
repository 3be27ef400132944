package install

import (
	"context"
	"encoding/json"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/kwok-dra/kwok-dra/test/cluster"
)

// hostName is the name of the node that is not fake.
const hostName = "host"

// host is a node that is there: what a kubelet does for the Pods that are bound
// to it, the test does, with processes for containers.
type host struct {
	objects
	cluster *cluster.Cluster
	// dir is for the files of the containers.
	dir string
	// named says that Pods see their own names as their host's, which takes a
	// namespace each.
	named bool

	mu   sync.Mutex
	pods map[types.UID]*runningPod
	// starting are the Pods that are not ready yet.
	starting sync.WaitGroup
}

// hostOptions are those of a cluster with a host and no kwok of its own. The host
// sends no heartbeats, so nobody waits for them.
func hostOptions() cluster.Options {
	return cluster.Options{
		KwokVersion: "0.8.0",
		Disable:     []string{cluster.Kwok},
		ExtraArgs:   map[string][]string{cluster.ControllerManager: {"node-monitor-grace-period=24h"}},
	}
}

// taintOptions are those, with taints of devices also where these are off by default.
func taintOptions(t *testing.T) cluster.Options {
	t.Helper()
	options := hostOptions()
	if kubernetesMinor(t) < 36 {
		options.FeatureGates = map[string]bool{"DRADeviceTaints": true}
		options.RuntimeConfig = map[string]bool{"resource.k8s.io/v1alpha3": true}
	}
	return options
}

// newHost adds a host to the cluster.
func newHost(t *testing.T, c *cluster.Cluster, client kubernetes.Interface) *host {
	t.Helper()
	h := &host{objects: objects{t, client}, cluster: c, dir: filepath.Join(stateDir(c), "host"), pods: map[types.UID]*runningPod{}}
	_, err := client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: hostName}}, metav1.CreateOptions{})
	require.NoError(t, err)
	resources := corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("110")}
	patch, err := json.Marshal(map[string]any{"status": corev1.NodeStatus{
		Allocatable: resources,
		Capacity:    resources,
		Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}},
	}})
	require.NoError(t, err)
	_, err = client.CoreV1().Nodes().Patch(t.Context(), hostName, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	h.watchPods()
	return h
}

// stateDir is the directory of the cluster.
func stateDir(c *cluster.Cluster) string { return filepath.Dir(c.Kubeconfig()) }

// watchPods runs the Pods that are bound to the host until the test ends.
func (h *host) watchPods() {
	h.Helper()
	ctx, cancel := context.WithCancel(h.Context())
	informer := coreinformers.NewFilteredPodInformer(h.client, "", 0, nil, func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", hostName).String()
	})
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(pod any) { h.sync(ctx, pod.(*corev1.Pod)) },
		UpdateFunc: func(_, pod any) { h.sync(ctx, pod.(*corev1.Pod)) },
	})
	require.NoError(h, err)
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	h.Cleanup(func() {
		cancel()
		running.Wait()
		h.starting.Wait()
		for _, pod := range h.pods {
			pod.stop()
		}
	})
}

// sync starts Pods that are new, and ends those that are deleted.
func (h *host) sync(ctx context.Context, pod *corev1.Pod) {
	h.mu.Lock()
	defer h.mu.Unlock()
	running := h.pods[pod.UID]
	switch {
	case pod.DeletionTimestamp == nil && running == nil:
		running = &runningPod{host: h, pod: pod}
		h.pods[pod.UID] = running
		h.starting.Go(func() { h.check(ctx, running.start(ctx)) })
	case pod.DeletionTimestamp != nil && running != nil:
		delete(h.pods, pod.UID)
		running.stop()
		err := h.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
		if !apierrors.IsNotFound(err) { // as one of a Job that only its finalizer has kept
			h.check(ctx, err)
		}
	}
}

// container is the one of that name that runs on the host.
func (h *host) container(name string) *process {
	h.Helper()
	h.starting.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, pod := range h.pods {
		for _, container := range pod.containers {
			if container.name == name {
				return container
			}
		}
	}
	h.Fatalf("no container %s runs on the host", name)
	return nil
}

// nameOf is the name that a Pod sees its host have, or "" for that of this machine.
func (h *host) nameOf(pod *corev1.Pod) string {
	if h.named {
		return pod.Name
	}
	return ""
}

// check fails the test, unless it has ended.
func (h *host) check(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		h.Error(err)
	}
}

// expectRunning fails the test if a container ends by itself: nobody starts it again,
// so what the test then waits for would never come.
func (h *host) expectRunning(ctx context.Context, container *process) {
	<-container.exited
	if !container.ending.Load() {
		h.check(ctx, container.exitError())
	}
}

// ready tells the API server that all containers of the Pod are.
func (h *host) ready(ctx context.Context, pod *corev1.Pod) error {
	now := metav1.Now()
	status := corev1.PodStatus{
		Phase:     corev1.PodRunning,
		StartTime: &now,
		HostIP:    loopback,
		PodIP:     loopback,
		PodIPs:    []corev1.PodIP{{IP: loopback}},
	}
	for _, condition := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	for _, container := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, Ready: true, Started: new(true),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
	return h.report(ctx, pod, &status)
}

// succeeded tells the API server that all containers of the Pod have.
func (h *host) succeeded(ctx context.Context, pod *corev1.Pod) error {
	now := metav1.Now()
	status := corev1.PodStatus{Phase: corev1.PodSucceeded, StartTime: &now}
	for _, container := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: now}},
		})
	}
	return h.report(ctx, pod, &status)
}

func (h *host) report(ctx context.Context, pod *corev1.Pod, status *corev1.PodStatus) error {
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	_, err = h.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// until waits until check returns "", which otherwise is what is missing.
func until(t *testing.T, within time.Duration, check func() string) {
	t.Helper()
	deadline := time.Now().Add(within)
	for pause := 5 * time.Millisecond; ; pause = min(pause+pause/4, longestPause) {
		missing := check()
		if missing == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s: %s", within, missing)
		}
		select {
		case <-t.Context().Done():
		case <-time.After(pause):
		}
	}
}

const (
	// patience is how long something takes that will never happen, however busy the
	// machine. No test tells by it whether anything is fast.
	patience = 5 * time.Minute
	// longestPause is the longest time between two looks at what is waited for.
	longestPause = 500 * time.Millisecond
	loopback     = "127.0.0.1"
)
