package main

import (
	"context"
	"fmt"
	"os"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/internal/fleet"
)

// createLeases makes the leases of nodes, as another replica's kwok would.
func (w *world) createLeases(ctx context.Context, from, to int) error {
	return inParallel("leases", to-from, func(i int) error {
		lease := &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: nodeName(from + i)},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: new("another-replica_1"), LeaseDurationSeconds: new(int32(40)), RenewTime: new(metav1.NowMicro()),
			},
		}
		_, err := w.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Create(ctx, lease, metav1.CreateOptions{})
		return err
	})
}

// measureLeases watches a sidecar that shares the nodes with other replicas.
func (w *world) measureLeases(ctx context.Context, length time.Duration, f *figures) error {
	fmt.Fprintf(os.Stderr, "  Listing another replica's %d leases for %s ...\n", w.nodes, length)
	process, err := w.startSidecar(ctx, "--shard-mode=lease", "--leader-elect-resource-namespace=kube-system")
	if err != nil {
		return err
	}
	if err := w.awaitIdle(ctx, process); err != nil {
		return err
	}
	before, err := process.CPUTime()
	if err != nil {
		return err
	}
	if err := fleet.Pause(ctx, length); err != nil {
		return err
	}
	after, err := process.CPUTime()
	if err != nil {
		return err
	}
	f.Leases.Core = (after - before).Seconds() / length.Seconds()
	if f.Leases.Peak, err = process.PeakMemory(); err != nil {
		return err
	}
	return process.Stop()
}
