package world

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/internal/admin"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// install brings kwok-dra into a cluster that has nothing but Kubernetes and kwok.
func install(ctx context.Context, c *cluster.Cluster, port int) (*World, error) {
	path, err := Programs(c)
	if err != nil {
		return nil, err
	}
	w := &World{Cluster: c, Path: path}
	if w.client, err = admin.NewClient(c.Kubeconfig()); err != nil {
		return nil, err
	}
	if err := w.applyDefinitions(ctx); err != nil {
		return nil, err
	}
	process, err := w.startSidecar(ctx, port)
	if err != nil {
		return nil, err
	}
	w.Page, w.Log = process.URL+"/", process.Log
	// The drivers of the nodes register and crash by the Stages of stages/node.
	general := filepath.Join(sidecar.Root(), "stages", "node", "general", configuration)
	_, err = c.Kubectl(ctx, "apply", "-f", general)
	return w, err
}

// configuration is a file beside Stages that is for kwok-dra and not for kwok.
const configuration = "kwok-dra-configuration.yaml"

// applyDefinitions applies the definitions of kwok-dra's custom resources, and
// Stages: kwok's own, and for nodes and Pods those of the project.
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
	return w.Cluster.AwaitDefinitions(ctx)
}

// isNoObject reports whether a file of a folder is not to be applied with the
// others.
func isNoObject(file string) bool {
	return slices.Contains([]string{"kustomization.yaml", configuration}, filepath.Base(file))
}

// startSidecar starts kwok-dra with the rights and options that it has where it is
// installed. If the port is taken in the meantime, it gets any.
func (w *World) startSidecar(ctx context.Context, port int) (*sidecar.Process, error) {
	kubeconfig, err := sidecar.ServiceAccount(ctx, w.Cluster)
	if err != nil {
		return nil, err
	}
	arguments := []string{"--kubeconfig", kubeconfig, "--enable-crds", "--config-map", "kube-system/kwok-dra", "--server-address"}
	process, err := sidecar.Start(ctx, w.Cluster, append(arguments, address(port))...)
	if err != nil && port != anyPort {
		process, err = sidecar.Start(ctx, w.Cluster, append(arguments, address(anyPort))...)
	}
	return process, err
}

// patience bounds the wait for what takes seconds.
const patience = 2 * time.Minute

// awaitPools waits until each node has a slice.
func (w *World) awaitPools(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		nodes, err := w.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("list nodes: %w", err)
		}
		published, err := w.client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("list slices: %w", err)
		}
		if len(published.Items) == len(nodes.Items) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the slices of %d nodes, there are %d: %w", len(nodes.Items), len(published.Items), ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}
