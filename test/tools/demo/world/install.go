package world

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/internal/admin"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// installWorld brings kwok-dra and nodes into a cluster that has nothing but Kubernetes
// and kwok. The nodes get ready while the rest starts.
func installWorld(ctx context.Context, c *cluster.Cluster, showsContainers bool, port int) (*World, error) {
	path, err := Programs(c)
	if err != nil {
		return nil, err
	}
	w := &World{Cluster: c, Path: path, ShowsContainers: showsContainers}
	if w.client, err = admin.NewClient(c.Kubeconfig()); err != nil {
		return nil, err
	}
	var kubeconfig string
	all, allCtx := errgroup.WithContext(ctx)
	all.Go(func() error { return w.applyDefinitions(allCtx) })
	all.Go(func() (err error) {
		kubeconfig, err = sidecar.ServiceAccount(allCtx, c)
		return err
	})
	if err := all.Wait(); err != nil {
		return nil, err
	}
	all, allCtx = errgroup.WithContext(ctx)
	all.Go(func() (err error) {
		w.Sidecar, err = w.startSidecar(allCtx, kubeconfig, port)
		return err
	})
	all.Go(func() error { return w.applyFiles(allCtx, "templates.yaml") })
	// The drivers of the nodes register and crash by the Stages of stages/node.
	all.Go(func() error {
		_, err := c.Kubectl(allCtx, "apply", "-f", filepath.Join(sidecar.Root(), "stages", "node", "general", configuration))
		return err
	})
	return w, all.Wait()
}

// configuration is a file beside Stages that is for kwok-dra and not for kwok.
const configuration = "kwok-dra-configuration.yaml"

// applyDefinitions applies the definitions of kwok-dra's custom resources, Stages
// (kwok's own, and for nodes and Pods those of the project), and the nodes that
// these play.
func (w *World) applyDefinitions(ctx context.Context) error {
	kwok, err := sidecar.ModuleDir(ctx, "sigs.k8s.io/kwok")
	if err != nil {
		return err
	}
	files := []string{
		filepath.Join(kwok, "kustomize", "stage", "node", "fast", "node-initialize.yaml"),
		filepath.Join(kwok, "kustomize", "stage", "node", "heartbeat-with-lease", "node-heartbeat-with-lease.yaml"),
		filepath.Join(kwok, "kustomize", "stage", "pod", "fast", "pod-complete.yaml"),
		filepath.Join(kwok, "kustomize", "stage", "pod", "fast", "pod-delete.yaml"),
	}
	for _, folder := range []string{"kustomize/crd", "stages/node/general", "stages/node/chaos", "stages/pod/fast"} {
		found, err := filepath.Glob(filepath.Join(sidecar.Root(), folder, "*.yaml"))
		if err != nil {
			return fmt.Errorf("list %s: %w", folder, err)
		}
		files = append(files, slices.DeleteFunc(found, isNoObject)...)
	}
	if w.ShowsContainers {
		for _, file := range []string{"role.yaml", "role_binding.yaml"} {
			files = append(files, filepath.Join(sidecar.Root(), "kustomize", "container-view", file))
		}
	}
	arguments := []string{"apply"}
	for _, file := range files {
		arguments = append(arguments, "-f", file)
	}
	if _, err := w.Cluster.Kubectl(ctx, arguments...); err != nil {
		return err
	}
	// As in kustomize/kwok-general.
	if _, err := w.Cluster.Kubectl(ctx, "patch", "stage", "node-initialize", "--type=merge", "--patch", `{"spec":{"immediateNextStage":true}}`); err != nil {
		return err
	}
	if err := w.applyFiles(ctx, "nodes.yaml"); err != nil {
		return err
	}
	return w.Cluster.AwaitDefinitions(ctx)
}

// isNoObject reports whether a file of a folder is not to be applied with the
// others.
func isNoObject(file string) bool {
	return slices.Contains([]string{"kustomization.yaml", configuration}, filepath.Base(file))
}

// startSidecar starts kwok-dra with the rights and options that it has where it is
// installed. If the port is taken in the meantime, it gets any.
func (w *World) startSidecar(ctx context.Context, kubeconfig string, port int) (*sidecar.Process, error) {
	arguments := []string{"--kubeconfig", kubeconfig, "--enable-crds", "--config-map", "kube-system/kwok-dra"}
	if w.ShowsContainers {
		arguments = append(arguments, "--container-view", w.Cluster.ContainerView())
	}
	arguments = append(arguments, "--server-address")
	process, err := sidecar.Start(ctx, w.Cluster, append(arguments, loopbackAddress(port))...)
	if err != nil && port != anyPort {
		process, err = sidecar.Start(ctx, w.Cluster, append(arguments, loopbackAddress(anyPort))...)
	}
	return process, err
}

// patience bounds the wait for what takes seconds.
const patience = 2 * time.Minute

// AwaitNodes returns when the plugins of all nodes are registered and their devices are
// published. The one does not follow from the other: the sidecar may publish before it
// reads that it is to wait for the plugins.
func (w *World) AwaitNodes(ctx context.Context) error {
	err := awaitDone(ctx, "wait for the slices of all nodes", func() (bool, error) {
		nodes, err := w.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, fmt.Errorf("list nodes: %w", err)
		}
		published, err := w.client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, fmt.Errorf("list slices: %w", err)
		}
		return len(published.Items) == len(nodes.Items) && !slices.ContainsFunc(nodes.Items, isPluginMissing), nil
	})
	if err != nil {
		return err
	}
	// Only the start is in a hurry: a driver that crashes later takes its time.
	_, err = w.Cluster.Kubectl(ctx, "annotate", "nodes", "--all", "node-dra-plugin-register.stage.kwok.x-k8s.io/delay-")
	return err
}

// isPluginMissing reports whether no plugin of a node is registered.
func isPluginMissing(node corev1.Node) bool {
	return !slices.ContainsFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
		return condition.Type == v1alpha1.PluginRegistered && condition.Status == corev1.ConditionTrue
	})
}

// awaitDone returns when done says so or fails.
func awaitDone(ctx context.Context, what string, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}
