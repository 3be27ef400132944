package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/internal/admin"
	"github.com/kwok-dra/kwok-dra/test/internal/fleet"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
	"github.com/kwok-dra/kwok-dra/test/perf/baseline"
)

// plain is a template that takes no time to render: a sidecar that starts looks at
// all nodes, and that is not what is measured where Pods are prepared.
const plain = `
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: ResourcePoolTemplate
metadata: {name: bench}
spec: {driver: gpu.example.com, devices: [{name: gpu, count: 8}]}
`

//go:embed stage.yaml
var stage string

// world is a control plane with a fleet, and what a client sees of it.
type world struct {
	options

	cluster *cluster.Cluster
	client  kubernetes.Interface
	// kubeconfig is that of the sidecar's ServiceAccount, which the baselines use as
	// well: the API server does not treat all users alike.
	kubeconfig string
	events     *fleet.Events
	pods       *fleet.PodEvents
}

// startCluster starts a control plane without limits of requests that count: a Pod of the scheduler is to be late for
// what is done for it, and not for a default of a flag.
func (w *world) startCluster(ctx context.Context) (err error) {
	unlimited := []string{"kube-api-qps=2000", "kube-api-burst=4000"}
	w.cluster, err = cluster.Start(ctx, cluster.Options{
		EnableCRDs: []string{"Stage"},
		// A kwok that starts again would wait for the leases of the old one to expire.
		ExtraArgs: map[string][]string{
			cluster.Kwok: {"node-lease-duration-seconds=0"}, cluster.Scheduler: unlimited, cluster.ControllerManager: unlimited,
		},
		Output: os.Stderr,
	})
	return err
}

func (w *world) createNodes(ctx context.Context) (err error) {
	if w.client, err = admin.NewClient(w.cluster.Kubeconfig()); err != nil {
		return err
	}
	if w.kubeconfig, err = sidecar.ServiceAccount(ctx, w.cluster); err != nil {
		return err
	}
	if err := fleet.ApplyKwokStage(ctx, w.cluster, "node/fast/node-initialize.yaml"); err != nil {
		return err
	}
	if w.pods, err = fleet.WatchPods(ctx, w.client); err != nil {
		return err
	}
	w.events, err = fleet.WatchEvents(ctx, w.client)
	return err
}

func (w *world) createFleet(ctx context.Context) error {
	err := fleet.InParallel(w.nodes, func(i int) error {
		node := fleet.NewNode(fmt.Sprintf("fleet-%d", i))
		if i%10 == 0 {
			node.Labels[schedulableLabel] = "true"
		}
		_, err := w.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("create nodes: %w", err)
	}
	return w.events.AwaitReady(ctx, w.nodes)
}

// playHeartbeats has kwok heartbeat for each node every 20 to 25 s.
func (w *world) playHeartbeats(ctx context.Context) error {
	if err := fleet.ApplyKwokStage(ctx, w.cluster, "node/heartbeat/node-heartbeat.yaml"); err != nil {
		return err
	}
	return fleet.RestartKwok(ctx, w.cluster)
}

// deleteSlices deletes all slices.
func (w *world) deleteSlices(ctx context.Context) error {
	if err := w.client.ResourceV1().ResourceSlices().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return fmt.Errorf("delete slices: %w", err)
	}
	if err := w.events.AwaitSlices(ctx, 0); err != nil {
		return fmt.Errorf("after deleting all slices: %w", err)
	}
	return nil
}

// startSidecar starts a sidecar with templates, and returns when it is ready.
func (w *world) startSidecar(ctx context.Context, documents string, arguments ...string) (*sidecar.Process, error) {
	if err := fleet.Configure(ctx, w.client, documents); err != nil {
		return nil, err
	}
	return fleet.StartSidecar(ctx, w.cluster, w.kubeconfig, arguments...)
}

// publishedBy starts a sidecar with a template, and returns when there is a slice of
// each node.
func (w *world) publishedBy(ctx context.Context, template string) (*sidecar.Process, error) {
	process, err := w.startSidecar(ctx, template)
	if err != nil {
		return nil, err
	}
	return process, w.events.AwaitSlices(ctx, w.nodes)
}

// runBaseline has a baseline do its work, until that is seen to be done.
func (w *world) runBaseline(ctx context.Context, await func(context.Context) (time.Duration, error), work string, arguments ...string) (s sample, err error) {
	process, err := baseline.Start(ctx, w.cluster, w.kubeconfig, work, arguments...)
	if err != nil {
		return s, err
	}
	s.cpu, err = cpuOf(process, func() (err error) {
		if err := baseline.Begin(process); err != nil {
			return err
		}
		s.took, err = await(ctx)
		return err
	})
	if err != nil {
		log, _ := os.ReadFile(process.Log)
		return s, fmt.Errorf("%w\n%s", err, log)
	}
	return s, process.Stop()
}

// startStage starts kwok with the Stage: a Stage that comes while kwok runs does not
// reach nodes that are there until something changes them.
func (w *world) startStage(ctx context.Context, round string) error {
	if _, err := w.cluster.KubectlInput(ctx, strings.NewReader(strings.ReplaceAll(stage, "ROUND", round)), "apply", "-f", "-"); err != nil {
		return err
	}
	return fleet.RestartKwok(ctx, w.cluster)
}

// removeStage takes the Stage and its slices away. Meanwhile kwok does not run,
// since it goes on with what it has begun.
func (w *world) removeStage(ctx context.Context) error {
	if err := w.cluster.StopComponent(ctx, cluster.Kwok); err != nil {
		return err
	}
	if _, err := w.cluster.Kubectl(ctx, "delete", "stage", "publish-slice"); err != nil {
		return err
	}
	if err := w.deleteSlices(ctx); err != nil {
		return err
	}
	return w.cluster.StartComponent(ctx, cluster.Kwok)
}

func (w *world) createNamespace(ctx context.Context, name string) error {
	defer w.pods.Forget()
	return fleet.CreateNamespace(ctx, w.client, name)
}

// boundPod makes a Pod with a claim as scheduler and controllers would leave it.
func (w *world) boundPod(ctx context.Context, namespace string, number int) error {
	name, node := fmt.Sprint("pod-", number), fmt.Sprintf("fleet-%d", number)
	pod := fleet.NewPod(namespace, name, "nobody", corev1.PodResourceClaim{ResourceClaimName: &name})
	if err := fleet.CreateAllocated(ctx, w.client, pod, node, "gpu-0"); err != nil {
		return err
	}
	return fleet.Bind(ctx, w.client, pod, node)
}
