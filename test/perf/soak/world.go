package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/internal/admin"
	"github.com/kwok-dra/kwok-dra/test/internal/fleet"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// namespace is that of the Pods.
const namespace = "soak"

// world is a cluster with a sidecar.
type world struct {
	cluster *cluster.Cluster
	client  kubernetes.Interface
	sidecar *sidecar.Process
	effects *effects
	cancel  context.CancelFunc // ends the watches
}

func newWorld(ctx context.Context) (*world, error) {
	c, err := cluster.Start(ctx, cluster.Options{
		EnableCRDs: []string{"Stage"},
		Disable:    []string{cluster.Scheduler}, // Pods are bound here, at a steady pace
		Output:     os.Stderr,
	})
	if err != nil {
		return nil, err
	}
	w := &world{cluster: c, cancel: func() {}}
	if err := w.startCluster(ctx); err != nil {
		return nil, errors.Join(err, w.stopCluster())
	}
	return w, nil
}

func (w *world) startCluster(ctx context.Context) (err error) {
	if w.client, err = admin.NewClient(w.cluster.Kubeconfig()); err != nil {
		return err
	}
	kubeconfig, err := sidecar.ServiceAccount(ctx, w.cluster)
	if err != nil {
		return err
	}
	for _, stage := range []string{"node/fast/node-initialize.yaml", "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml"} {
		if err := fleet.ApplyKwokStage(ctx, w.cluster, stage); err != nil {
			return err
		}
	}
	if _, err := w.cluster.Kubectl(ctx, "apply", "-f", filepath.Join(sidecar.Root(), "stages/pod/fast/pod-ready.yaml")); err != nil {
		return err
	}
	if err := fleet.CreateNamespace(ctx, w.client, namespace); err != nil {
		return err
	}
	if err := fleet.Configure(ctx, w.client, templatesOf(0)); err != nil {
		return err
	}
	watching, cancel := context.WithCancel(ctx)
	w.cancel = cancel
	if w.effects, err = watchEffects(watching, w.client); err != nil {
		return err
	}
	w.sidecar, err = fleet.StartSidecar(ctx, w.cluster, kubeconfig, "--profiling")
	return err
}

func (w *world) stopCluster() error {
	w.cancel()
	return w.cluster.Stop()
}
