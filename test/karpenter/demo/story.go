package main

import (
	"context"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/internal/admin"
	"github.com/kwok-dra/kwok-dra/test/internal/karpenter"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
	"github.com/kwok-dra/kwok-dra/test/karpenter/timeline"
	"github.com/kwok-dra/kwok-dra/test/tools/demo/show"
	"github.com/kwok-dra/kwok-dra/test/tools/demo/world"
)

//go:embed manifests/*.yaml
var manifests embed.FS

// patience bounds each wait. Karpenter gives up a node half a minute after the
// last Pod is gone.
const patience = 3 * time.Minute

// driver is that of all devices of the demo.
const driver = "gpu.nvidia.com"

type story struct {
	cluster  *cluster.Cluster
	client   kubernetes.Interface
	sidecar  *sidecar.Process
	path     string // of the programs that users run
	timeline *timeline.Timeline
	teller   teller
}

// compilePrograms comes first, so that no cluster waits for it.
func (s *story) compilePrograms(context.Context) error {
	return show.Compile(os.Stdout, "kwok-dra and Karpenter", func() error {
		if _, err := sidecar.Programs(); err != nil {
			return err
		}
		_, err := karpenter.Binary()
		return err
	})
}

func (s *story) startCluster(ctx context.Context) error {
	show.Chapter(os.Stdout, "A real control plane with kwok, on loopback, without nodes")
	c, err := show.StartCluster(ctx)
	if err != nil {
		return err
	}
	s.cluster = c
	s.path, err = world.Programs(c)
	return err
}

// templateFiles are the profiles of the catalogue that both kwok-dra and Karpenter
// read.
func templateFiles() []string {
	var paths []string
	for _, profile := range []string{"nvidia-h100", "nvidia-t4"} {
		paths = append(paths, filepath.Join(sidecar.Root(), "kustomize", "profiles", profile, "template.yaml"))
	}
	return paths
}

func (s *story) startSidecar(ctx context.Context) error {
	show.Chapter(os.Stdout, "kwok-dra, with the devices of H100 and T4 nodes")
	kubeconfig, err := sidecar.ServiceAccount(ctx, s.cluster)
	if err != nil {
		return err
	}
	arguments := []string{"--kubeconfig", kubeconfig}
	for _, path := range templateFiles() {
		arguments = append(arguments, "--config", path)
	}
	s.sidecar, err = sidecar.Start(ctx, s.cluster, arguments...)
	if err == nil {
		fmt.Println("kwok-dra is ready.")
	}
	return err
}

func (s *story) startKarpenter(ctx context.Context) error {
	show.Chapter(os.Stdout, "Karpenter with its KWOK provider, whose instance types have the same devices")
	types := filepath.Join(sidecar.Root(), "kustomize", "karpenter", "instance-types", "instance_types.json")
	if err := karpenter.Start(ctx, s.cluster, karpenter.Options{InstanceTypes: types, Templates: templateFiles()}); err != nil {
		return err
	}
	config, err := admin.Config(s.cluster.Kubeconfig())
	if err != nil {
		return err
	}
	if s.client, err = kubernetes.NewForConfig(config); err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	if s.timeline, err = timeline.Watch(ctx, config, s.teller.printMark); err != nil {
		return err
	}
	if err := show.Apply(ctx, s.cluster, manifests, "karpenter.yaml"); err != nil {
		return err
	}
	_, err = s.cluster.Kubectl(ctx, "wait", "--for=condition=Ready", "--timeout=60s", "nodepools", "--all")
	if err == nil {
		fmt.Println("Karpenter is ready.")
	}
	return err
}

func (s *story) closeLoop(ctx context.Context) error {
	show.Chapter(os.Stdout, "A Pod that claims 8 GPUs, and the node that Karpenter creates for it")
	const pod = "training"
	s.teller.startPrinting()
	defer s.teller.stopPrinting()
	if err := show.Apply(ctx, s.cluster, manifests, "training.yaml"); err != nil {
		return err
	}
	running, err := s.awaitStep(ctx, timeline.PodRunning, pod)
	if err != nil {
		return err
	}
	node, err := s.client.CoreV1().Nodes().Get(ctx, running.Detail, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get node: %w", err)
	}
	// The KWOK provider makes the name of the NodeClaim the node's hostname.
	if _, err := s.awaitStep(ctx, timeline.NodeClaimInitialized, node.Labels[corev1.LabelHostname]); err != nil {
		return err
	}
	if err := s.client.CoreV1().Pods("default").Delete(ctx, pod, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete Pod: %w", err)
	}
	for _, step := range []timeline.Step{timeline.NodeGone, timeline.SlicesGone} {
		if _, err := s.awaitStep(ctx, step, running.Detail); err != nil {
			return err
		}
	}
	return nil
}

func (s *story) awaitStep(ctx context.Context, step timeline.Step, name string) (timeline.Mark, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return s.timeline.Await(ctx, step, name)
}

func (s *story) sayWhatIsNext(context.Context) error {
	show.Chapter(os.Stdout, "It is yours")
	fmt.Printf(`Everything keeps running. %s
Look around:

  kubectl get nodepools,nodeclaims,nodes
  kwok-dractl status
  kubectl scale deployment inference --replicas 5    # half a minute later Karpenter removes 45 nodes
  tail -f %s

To remove all of it:

  make demo-down
`, s.runningDemo().Access(), filepath.Join(s.cluster.Logs(), karpenter.Component+".log"))
	return nil
}

func (s *story) runningDemo() *show.Running {
	return show.NewRunning("make demo-karpenter", s.cluster, s.path, s.sidecar)
}
