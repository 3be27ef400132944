package main

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/test/fleet"
)

// renewInterval is how often kwok renews the lease of a node.
const renewInterval = 10 * time.Second

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

// measureRenewals watches a sidecar that shares the nodes with other replicas while
// the leases of all nodes are renewed, as fast as that goes.
func (w *world) measureRenewals(ctx context.Context, length time.Duration, f *figures) error {
	fmt.Fprintf(os.Stderr, "  Watching another replica's %d leases being renewed for %s ...\n", w.nodes, length)
	process, err := w.start(ctx, "--shard-mode=lease", "--leader-elect-resource-namespace=kube-system")
	if err != nil {
		return err
	}
	if err := w.settle(ctx, process); err != nil {
		return err
	}
	before, err := process.CPUTime()
	if err != nil {
		return err
	}
	renewed, err := w.renew(ctx, length)
	if err != nil {
		return err
	}
	after, err := process.CPUTime()
	if err != nil {
		return err
	}
	f.RenewalCPU = (after - before).Seconds() / float64(renewed) * 1000
	if f.SharedMemory, err = process.PeakMemory(); err != nil {
		return err
	}
	return process.Stop()
}

// renew renews leases, one after the other, and counts that.
func (w *world) renew(ctx context.Context, length time.Duration) (int, error) {
	leases := w.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	var renewed atomic.Int64
	end := time.Now().Add(length)
	err := fleet.InParallel(fleet.Workers, func(worker int) error {
		for i := worker; time.Now().Before(end); i = (i + fleet.Workers) % w.nodes {
			patch := fmt.Appendf(nil, `{"spec": {"renewTime": %q}}`, time.Now().UTC().Format(metav1.RFC3339Micro))
			if _, err := leases.Patch(ctx, nodeName(i), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				return fmt.Errorf("renew lease: %w", err)
			}
			renewed.Add(1)
		}
		return nil
	})
	return int(renewed.Load()), err
}
