// Package world makes the cluster that "make demo" shows and leaves running: a
// control plane with kwok and kwok-dra, custom resources and Stages, fake H100 and
// T4 nodes, and Pods that claim their devices.
package world

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/cluster/build"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

//go:embed manifests/*.yaml
var manifests embed.FS

// A World is a running cluster with kwok-dra.
type World struct {
	// Cluster is the cluster.
	Cluster *cluster.Cluster
	// Path is a directory for $PATH. It has kubectl, kube-scheduler, kwok-dra,
	// kwok-dractl, and the latter as a plugin of kubectl.
	Path string
	// Sidecar is kwok-dra, whose URL has the page.
	Sidecar *sidecar.Process
	// ShowsContainers says that kubectl logs and kubectl exec show the devices of a
	// container, for which older releases of kwok lack the kinds.
	ShowsContainers bool

	client kubernetes.Interface
}

// Options say how to start a World.
type Options struct {
	// Name is that of a cluster that keeps running when this process ends, until
	// cluster.Down. Optional, without it the cluster ends with the process at the
	// latest.
	Name string
	// Output receives the progress. Optional, default is silence.
	Output io.Writer
	// AnyPort has kwok-dra's page take any port, as in a test.
	AnyPort bool
}

// Start starts a World, whose nodes get ready meanwhile: AwaitNodes. kwok-dra's page
// has its usual port where that is free.
func Start(ctx context.Context, o Options) (*World, error) {
	options, err := clusterOptions()
	if err != nil {
		return nil, err
	}
	options.Name, options.Output = o.Name, o.Output
	c, err := startCluster(ctx, options)
	if err != nil {
		return nil, err
	}
	port := anyPort
	if !o.AnyPort {
		port = preferredPort()
	}
	w, err := installWorld(ctx, c, options.ContainerView, port)
	if err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return w, nil
}

func startCluster(ctx context.Context, o cluster.Options) (*cluster.Cluster, error) {
	if o.Name == "" {
		return cluster.Start(ctx, o)
	}
	c, _, err := cluster.Up(ctx, o)
	return c, err
}

// clusterOptions are those of a cluster whose kwok reads its Stages from the
// cluster, keeps up with thousands of nodes and shows containers, and whose devices can be tainted.
func clusterOptions() (cluster.Options, error) {
	o := cluster.Options{
		EnableCRDs: []string{"Stage"},
		Config:     []string{filepath.Join(sidecar.Root(), "test/tools/demo/world/kwok.yaml")},
		ExtraArgs: map[string][]string{
			cluster.ControllerManager: {
				"controllers=*,-ttl-controller",          // no kubelet reads the annotation that it writes to each node
				"kube-api-qps=100", "kube-api-burst=200", // with the default of 20, a minute passes until 300 Pods are gone
			},
			// Without it, kwok's node-initialize removes all addresses of a node that it makes Ready a second time, and
			// nobody reaches the containers there.
			cluster.Kwok: {"node-ip=127.0.0.1"},
		},
	}
	versions, err := build.Versions{}.Resolve()
	if err != nil {
		return o, err
	}
	o.ContainerView = !strings.HasPrefix(versions.Kwok, "v0.6.") && !strings.HasPrefix(versions.Kwok, "v0.7.")
	if strings.HasPrefix(versions.Kubernetes, "v1.34.") || strings.HasPrefix(versions.Kubernetes, "v1.35.") {
		o.FeatureGates = map[string]bool{"DRADeviceTaints": true} // later releases have it by default
		o.RuntimeConfig = map[string]bool{"resource.k8s.io/v1alpha3": true}
	}
	return o, nil
}

// RunPods creates a Deployment whose Pods claim an H100 each, and returns when
// they run and show their devices.
func (w *World) RunPods(ctx context.Context) error {
	if err := w.applyFiles(ctx, "workload.yaml"); err != nil {
		return err
	}
	_, err := w.Cluster.Kubectl(ctx, "rollout", "status", "deployment/training", "--timeout=2m")
	if err != nil || !w.ShowsContainers {
		return err
	}
	return awaitDone(ctx, "wait for the containers of the Deployment training", func() (bool, error) {
		shown, err := w.Cluster.Kubectl(ctx, "get", "execs,logs", "--no-headers")
		return strings.Count(shown, "training-") == 2*pods, err
	})
}

// pods is how many the Deployment has.
const pods = 4

// Shell prepares a line of shell in the checkout, as a user who has followed the
// last words of the demo has it: with kubectl and kwok-dractl, and the cluster as
// that of both.
func (w *World) Shell(ctx context.Context, line string) *exec.Cmd {
	shell := exec.CommandContext(ctx, "sh", "-ec", line)
	shell.Dir = sidecar.Root()
	shell.Env = slices.Concat(w.Cluster.KubectlCommand(ctx).Env, []string{"KUBECONFIG=" + w.Cluster.Kubeconfig()})
	return shell
}

// applyFiles applies files of manifests.
func (w *World) applyFiles(ctx context.Context, files ...string) error {
	var documents []string
	for _, file := range files {
		content, err := manifests.ReadFile("manifests/" + file)
		if err != nil {
			return fmt.Errorf("read manifests of the demo: %w", err)
		}
		documents = append(documents, string(content))
	}
	_, err := w.Cluster.KubectlInput(ctx, strings.NewReader(strings.Join(documents, "\n---\n")), "apply", "-f", "-")
	return err
}

// Programs makes the programs that users run part of a cluster, and returns the
// directory where they are. kubectl is there already.
func Programs(c *cluster.Cluster) (string, error) {
	built, err := sidecar.Programs()
	if err != nil {
		return "", err
	}
	programs := []string{c.Binary(cluster.Scheduler)} // for users who run a second one
	for _, name := range []string{"kwok-dra", "kwok-dractl", "kubectl-dra", "kubectl_complete-dra"} {
		programs = append(programs, filepath.Join(built, name))
	}
	var path string
	for _, program := range programs {
		if path, err = c.Adopt(program); err != nil {
			return "", err
		}
	}
	return filepath.Dir(path), nil
}
