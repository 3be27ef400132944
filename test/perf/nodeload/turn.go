package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/internal/admin"
	"github.com/kwok-dra/kwok-dra/test/internal/exampledriver"
	"github.com/kwok-dra/kwok-dra/test/internal/fleet"
	"github.com/kwok-dra/kwok-dra/test/internal/nodeload"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

const (
	// profile has the devices of dra-example-driver.
	profile   = "gpu-example"
	namespace = "pods"
	// sidecarName is kwok-dra among the processes that are measured.
	sidecarName = "kwok-dra"
)

// turn is one cluster with fake nodes, and what is done on it.
type turn struct {
	hasReal     bool
	nodes, pods int
	rest        time.Duration

	cluster  *cluster.Cluster
	client   kubernetes.Interface
	events   *fleet.Events
	podSteps *fleet.PodEvents
	// folder is the --plugins-dir.
	folder  string
	sidecar *sidecar.Process
	drivers *exampledriver.Fleet
	pids    map[string]int
}

// takeTurn runs a turn on a cluster of its own.
func takeTurn(ctx context.Context, t turn) (f *figures, err error) {
	stages, err := stageFiles(ctx)
	if err != nil {
		return nil, err
	}
	t.cluster, err = cluster.Start(ctx, cluster.Options{
		Config: stages, Audit: true,
		// The API server logs each request with its flow.
		ExtraArgs: map[string][]string{cluster.APIServer: {"vmodule=httplog=3"}},
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.cluster.Stop()) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // what watches the cluster ends before it
	if err := t.startSidecar(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(t.folder)) }()
	return t.measure(ctx)
}

// stageFiles are kwok's fast Stages with leases, and the project's in place of pod-ready.
func stageFiles(ctx context.Context) ([]string, error) {
	kwok, err := sidecar.ModuleDir(ctx, "sigs.k8s.io/kwok")
	if err != nil {
		return nil, err
	}
	files := []string{filepath.Join(sidecar.Root(), "stages/pod/fast/pod-ready.yaml")}
	for _, stage := range []string{"node/fast/node-initialize", "node/heartbeat-with-lease/node-heartbeat-with-lease", "pod/fast/pod-complete", "pod/fast/pod-delete"} {
		files = append(files, filepath.Join(kwok, "kustomize/stage", stage+".yaml"))
	}
	return files, nil
}

// startSidecar starts kwok-dra, without nodes.
func (t *turn) startSidecar(ctx context.Context) (err error) {
	if t.client, err = admin.NewClient(t.cluster.Kubeconfig()); err != nil {
		return err
	}
	if t.events, err = fleet.WatchEvents(ctx, t.client); err != nil {
		return err
	}
	if t.podSteps, err = fleet.WatchPods(ctx, t.client); err != nil {
		return err
	}
	kubeconfig, err := sidecar.ServiceAccount(ctx, t.cluster)
	if err != nil {
		return err
	}
	if err := nodeload.Grant(ctx, t.cluster); err != nil {
		return err
	}
	if t.folder, err = os.MkdirTemp("", "p"); err != nil {
		return fmt.Errorf("make the folder of plugins: %w", err)
	}
	arguments, template := []string{"--node-load"}, ""
	if t.hasReal {
		arguments = append(arguments, "--plugins-dir", t.folder)
		t.drivers, err = exampledriver.New(ctx, t.cluster, t.client, t.folder)
	} else {
		template, err = newTemplate()
	}
	if err != nil {
		return err
	}
	if err := fleet.Configure(ctx, t.client, template); err != nil {
		return err
	}
	if t.sidecar, err = fleet.StartSidecar(ctx, t.cluster, kubeconfig, arguments...); err != nil {
		return err
	}
	if t.pids, err = t.cluster.ComponentPIDs(); err != nil {
		return err
	}
	t.pids[sidecarName] = t.sidecar.PID()
	return nil
}

// newTemplate is the template by which kwok-dra plays the driver. Like the driver by default, it writes no status of claims.
func newTemplate() (string, error) {
	content, err := os.ReadFile(filepath.Join(sidecar.Root(), "kustomize/profiles", profile, "template.yaml"))
	if err != nil {
		return "", fmt.Errorf("read the template: %w", err)
	}
	var template struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Metadata   metav1.ObjectMeta `json:"metadata"`
		Spec       map[string]any    `json:"spec"`
	}
	if err := yaml.Unmarshal(content, &template); err != nil {
		return "", fmt.Errorf("decode the template: %w", err)
	}
	template.Spec["claimStatus"] = map[string]string{"mode": "None"}
	if content, err = yaml.Marshal(template); err != nil {
		return "", fmt.Errorf("encode the template: %w", err)
	}
	return string(content), nil
}

func nodeName(i int) string { return fmt.Sprintf("n%d", i) }

// createNodes creates the nodes, and waits until they are Ready.
func (t *turn) createNodes(ctx context.Context) error {
	err := fleet.InParallel(t.nodes, func(i int) error {
		node := fleet.NewNode(nodeName(i))
		node.Labels["dra.kwok.x-k8s.io/profile"] = profile
		_, err := t.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("create nodes: %w", err)
	}
	return t.events.AwaitReady(ctx, t.nodes)
}

// writeKubeconfigs is not measured: on real nodes it is the kubelet that asks for the tokens of drivers.
func (t *turn) writeKubeconfigs(ctx context.Context) error {
	if !t.hasReal {
		return nil
	}
	return fleet.InParallel(t.nodes, func(i int) error { return t.drivers.WriteKubeconfig(ctx, nodeName(i)) })
}

// startDrivers starts real drivers, and waits for the devices of all nodes.
func (t *turn) startDrivers(ctx context.Context) error {
	if t.hasReal {
		for i := range t.nodes {
			if err := t.drivers.Start(ctx, nodeName(i)); err != nil {
				return err
			}
		}
	}
	if err := t.events.AwaitSlices(ctx, t.nodes); err != nil {
		return err
	}
	return t.awaitQuiet(ctx)
}

// awaitQuiet waits until kubelets and drivers have sent all that they send at once.
func (t *turn) awaitQuiet(ctx context.Context) error {
	const interval, quietLooks = time.Second, 4
	last, looks := -1, 0
	for looks < quietLooks {
		if err := fleet.Pause(ctx, interval); err != nil {
			return err
		}
		events, err := t.cluster.Audited(func(event *cluster.AuditEvent) bool {
			what := nodeload.RequestOf(event)
			return what != "" && !isOfTime(what)
		})
		if err != nil {
			return err
		}
		if looks++; len(events) != last {
			last, looks = len(events), 0
		}
	}
	return nil
}

// playPods creates the Pods, and deletes them when all have run.
func (t *turn) playPods(ctx context.Context) error {
	err := fleet.InParallel(t.pods, func(i int) error {
		pod := fleet.NewPod(namespace, fmt.Sprint("pod-", i), corev1.DefaultSchedulerName, corev1.PodResourceClaim{ResourceClaimTemplateName: new("gpu")})
		pod.Spec.AutomountServiceAccountToken = nil // its kubelet asks for a token
		_, err := t.client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("create Pods: %w", err)
	}
	if _, _, err := t.podSteps.Await(ctx, fleet.Running, t.pods); err != nil {
		return err
	}
	if err := t.awaitQuiet(ctx); err != nil {
		return err
	}
	gracefully := metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))}
	if err := t.client.CoreV1().Pods(namespace).DeleteCollection(ctx, gracefully, metav1.ListOptions{}); err != nil {
		return fmt.Errorf("delete Pods: %w", err)
	}
	for {
		left, err := t.client.ResourceV1().ResourceClaims(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("list claims: %w", err)
		}
		if len(left.Items) == 0 {
			return t.awaitQuiet(ctx)
		}
		if err := fleet.Pause(ctx, 200*time.Millisecond); err != nil {
			return fmt.Errorf("wait for %d claims to go: %w", len(left.Items), err)
		}
	}
}

// preparePods makes what the Pods need.
func (t *turn) preparePods(ctx context.Context) error {
	if _, err := t.cluster.Kubectl(ctx, "apply", "-f", filepath.Join(sidecar.Root(), "kustomize/profiles", profile, "deviceclass.yaml")); err != nil {
		return err
	}
	if err := fleet.CreateNamespace(ctx, t.client, namespace); err != nil {
		return err
	}
	_, err := t.client.ResourceV1().ResourceClaimTemplates(namespace).Create(ctx, &resourcev1.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: "gpu"}, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: fleet.ClaimSpec()},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create ResourceClaimTemplate: %w", err)
	}
	return nil
}
