package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/cluster/build"
	"github.com/kwok-dra/kwok-dra/test/internal/admin"
	"github.com/kwok-dra/kwok-dra/test/internal/fleet"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

const (
	// fillingNamespace has the Pods that fill nodes, and namespace those of the rounds.
	fillingNamespace = "filling"
	namespace        = "envelope"
	// claimTemplate is what the Pods of a round have their claims by.
	claimTemplate = "claim"
	sidecarName   = "kwok-dra"
)

// subject is a control plane that is measured.
type subject struct {
	// Version is that of Kubernetes, and Patch the path of a patch of one of its programs, or "".
	Version, Patch string
}

// name is what the subject is called in reports.
func (s subject) name() string {
	if s.Patch == "" {
		return s.Version
	}
	return s.Version + "+" + strings.TrimSuffix(filepath.Base(s.Patch), ".patch")
}

// patchedPrograms builds the program that the subject's patch changes.
func (s subject) patchedPrograms(ctx context.Context) (map[string]string, error) {
	if s.Patch == "" {
		return nil, nil
	}
	program, err := readPatchedProgram(s.Patch)
	if err != nil {
		return nil, err
	}
	path, err := build.EnsurePatched(ctx, build.Patched{Kubernetes: s.Version, Program: program, Patch: s.Patch}, os.Stderr)
	return map[string]string{program: path}, err
}

// world is a cluster of a subject, with the fleet of a point.
type world struct {
	subject
	cluster *cluster.Cluster
	client  kubernetes.Interface
	events  *fleet.Events
	pods    *fleet.PodEvents
	// stopWatching ends the watches of events and pods.
	stopWatching context.CancelFunc
	// pids are those of the components, and of the sidecar if there is one.
	pids    map[string]int
	sidecar *sidecar.Process

	shape shape
	// bytesPerNode is what the API server stores for a node and its slices.
	bytesPerNode float64
	rounds       int
}

// startWorld starts the cluster of a subject. Its components have no limit of requests that
// counts: measured is what they can do, and not the default of a flag. Programs replace those of the version.
func startWorld(ctx context.Context, of subject, programs map[string]string, output io.Writer) (*world, error) {
	const qps, burst = "kube-api-qps=2000", "kube-api-burst=4000"
	c, err := cluster.Start(ctx, cluster.Options{
		KubernetesVersion: of.Version,
		Programs:          programs,
		EnableCRDs:        []string{"Stage"},
		// On by default in some of the versions that are compared, and off in others.
		FeatureGates: map[string]bool{"DRAConsumableCapacity": true, "DRAPartitionableDevices": true},
		ExtraArgs: map[string][]string{
			cluster.Kwok:              {"node-lease-duration-seconds=0"},
			cluster.APIServer:         {"disable-admission-plugins=TaintNodesByCondition"},
			cluster.ControllerManager: {"node-monitor-grace-period=24h", "controllers=*,-ttl-controller", qps, burst},
			cluster.Scheduler:         {qps, burst},
		},
		Output: output,
	})
	if err != nil {
		return nil, err
	}
	w := &world{subject: of, cluster: c}
	ctx, w.stopWatching = context.WithCancel(ctx)
	if err := w.prepareCluster(ctx); err != nil {
		return nil, errors.Join(err, w.stopCluster())
	}
	return w, nil
}

// stopCluster stops the cluster, and what runs beside it.
func (w *world) stopCluster() error { return errors.Join(w.stopBeside(), w.cluster.Stop()) }

// stopBeside stops what runs beside the cluster.
func (w *world) stopBeside() error {
	w.stopWatching()
	if w.sidecar == nil {
		return nil
	}
	return w.sidecar.Stop()
}

// prepareCluster creates what all points need.
func (w *world) prepareCluster(ctx context.Context) (err error) {
	if w.client, err = admin.NewClient(w.cluster.Kubeconfig()); err != nil {
		return err
	}
	for _, stage := range []string{"node/fast/node-initialize.yaml", "pod/fast/pod-ready.yaml"} {
		if err := fleet.ApplyKwokStage(ctx, w.cluster, stage); err != nil {
			return err
		}
	}
	if err := fleet.RestartKwok(ctx, w.cluster); err != nil {
		return err
	}
	if w.pids, err = w.cluster.ComponentPIDs(); err != nil {
		return err
	}
	for _, name := range []string{namespace, fillingNamespace} {
		if err := fleet.CreateNamespace(ctx, w.client, name); err != nil {
			return err
		}
	}
	if _, err := w.client.ResourceV1().DeviceClasses().Create(ctx, newClass(), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create DeviceClass: %w", err)
	}
	if w.events, err = fleet.WatchEvents(ctx, w.client); err != nil {
		return err
	}
	w.pods, err = fleet.WatchPods(ctx, w.client)
	return err
}

// createFleet makes the fleet of a point.
func (w *world) createFleet(ctx context.Context, s shape) error {
	w.shape = s
	template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: claimTemplate}, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: s.newClaimSpec()}}
	if _, err := w.client.ResourceV1().ResourceClaimTemplates(namespace).Create(ctx, template, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create ResourceClaimTemplate: %w", err)
	}
	// kwok makes the nodes Ready.
	nodes := make([]*corev1.Node, s.Nodes)
	err := fleet.InParallel(s.Nodes, func(i int) (err error) {
		nodes[i], err = w.client.CoreV1().Nodes().Create(ctx, fleet.NewNode(fmt.Sprintf("fleet-%d", i)), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("create nodes: %w", err)
	}
	slices := len(s.newSlices(nodes[0])) * s.Nodes
	if err := w.startSidecar(ctx); err != nil {
		return err
	}
	if s.Sidecar == 0 {
		err = fleet.InParallel(s.Nodes, func(i int) error { return w.createSlices(ctx, s.newSlices(nodes[i])) })
	}
	if err != nil {
		return fmt.Errorf("create slices: %w", err)
	}
	if err := errors.Join(w.events.AwaitReady(ctx, s.Nodes), w.events.AwaitSlices(ctx, slices)); err != nil {
		return err
	}
	if w.bytesPerNode, err = w.storedBytes(ctx); err != nil {
		return err
	}
	w.bytesPerNode /= float64(s.Nodes)
	return w.fillNodes(ctx, nodes)
}

func (w *world) createSlices(ctx context.Context, slices []*resourcev1.ResourceSlice) error {
	for _, slice := range slices {
		if _, err := w.client.ResourceV1().ResourceSlices().Create(ctx, slice, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// storedBytes is how large all nodes and slices are as protobuf, which is what etcd has.
func (w *world) storedBytes(ctx context.Context) (float64, error) {
	sum := 0
	for client, resource := range map[rest.Interface]string{w.client.CoreV1().RESTClient(): "nodes", w.client.ResourceV1().RESTClient(): "resourceslices"} {
		list, err := client.Get().Resource(resource).SetHeader("Accept", runtime.ContentTypeProtobuf).Do(ctx).Raw()
		if err != nil {
			return 0, fmt.Errorf("list %s: %w", resource, err)
		}
		sum += len(list)
	}
	return float64(sum), nil
}

// fillNodes gives devices of each node to a Pod, as scheduler and kubelet would.
func (w *world) fillNodes(ctx context.Context, nodes []*corev1.Node) error {
	if w.shape.filledDevices() == 0 {
		return nil
	}
	w.pods.Forget()
	err := fleet.InParallel(len(nodes), func(i int) error {
		pod, claim, allocation := w.shape.newFilling(nodes[i].Name)
		pod, err := w.client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		claims := w.client.ResourceV1().ResourceClaims(claim.Namespace)
		if claim, err = claims.Create(ctx, claim, metav1.CreateOptions{}); err != nil {
			return err
		}
		claim.Status = resourcev1.ResourceClaimStatus{
			Allocation:  &allocation,
			ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: pod.Name, UID: pod.UID}},
		}
		_, err = claims.UpdateStatus(ctx, claim, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("fill nodes: %w", err)
	}
	_, _, err = w.pods.Await(ctx, fleet.Running, len(nodes))
	return err
}
