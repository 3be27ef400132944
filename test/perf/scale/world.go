package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/internal/admin"
	"github.com/kwok-dra/kwok-dra/test/internal/fleet"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
	"github.com/kwok-dra/kwok-dra/test/perf/baseline"
)

// world is a control plane with a fleet that grows.
type world struct {
	cluster    *cluster.Cluster
	client     kubernetes.Interface
	kubeconfig string // of the sidecar
	events     *fleet.Events
	pods       *fleet.PodEvents
	cancel     context.CancelFunc // ends the watches

	size
}

// size is how large the fleet is, and what is in it.
type size struct {
	nodes, podsPerNode int
	// played is the status that kwok gives a node.
	played *corev1.NodeStatus
}

// newWorld starts a control plane for fleets of up to that many nodes.
func newWorld(ctx context.Context, nodes, podsPerNode int) (*world, error) {
	// More garbage takes less CPU, of which the control plane needs most. Beyond the usual fleet it would take more memory
	// than a machine of 24 GiB has, and so would the caches of controllers that have nothing to do.
	garbage, controllers := "400", "*,-ttl-controller"
	if nodes > usualFleet {
		garbage, controllers = "50", "serviceaccount-controller,resourceclaim-controller"
		if err := checkMemory(nodes); err != nil {
			return nil, err
		}
	}
	restore := setVariable("GOGC", garbage)
	c, err := cluster.Start(ctx, cluster.Options{
		EnableCRDs: []string{"Stage"},
		// Pods are bound here: the scheduler, at its default limit of requests, would
		// take an hour for them.
		Disable: []string{cluster.Scheduler},
		ExtraArgs: map[string][]string{
			// 65,000 nodes with their Pods write more between two compactions than the default of 2 GiB has room for.
			cluster.Etcd: {"quota-backend-bytes=8589934592"},
			// Nodes heartbeat by a Stage, and only while that is measured: leases of
			// 10,000 nodes alone would be a thousand writes a second.
			cluster.Kwok: {"node-lease-duration-seconds=0"},
			// Nodes come Ready; otherwise the controller manager would take their taints
			// away for ten minutes, at its limit of requests.
			cluster.APIServer: {"disable-admission-plugins=TaintNodesByCondition"},
			// It would annotate all nodes for minutes, each time that there are many more.
			cluster.ControllerManager: {"node-monitor-grace-period=24h", "controllers=" + controllers},
		},
		Output: os.Stderr,
	})
	restore() // the sidecar is to run as it does elsewhere
	if err != nil {
		return nil, err
	}
	w := &world{cluster: c, size: size{podsPerNode: podsPerNode}, cancel: func() {}}
	if err := w.startCluster(ctx); err != nil {
		return nil, errors.Join(err, w.stopCluster())
	}
	return w, nil
}

// checkMemory returns an error if a large fleet does not fit the memory of the machine. Where nothing tells how much that
// is, it may.
func checkMemory(nodes int) error {
	const bytesPerNode = 340 << 10 // of all programs together
	available, err := sidecar.AvailableMemory()
	if want := int64(nodes) * bytesPerNode; err == nil && available < want {
		return fmt.Errorf("%d nodes and all programs take about %s MiB, and the machine has %s MiB left: give fewer -nodes, or more memory",
			nodes, formatMebibytes(want), formatMebibytes(available))
	}
	return nil
}

// setVariable sets an environment variable for the programs that are started until it is restored.
func setVariable(name, value string) (restore func()) {
	before, set := os.LookupEnv(name)
	_ = os.Setenv(name, value) // without it, all is slower or larger
	return func() {
		if set {
			_ = os.Setenv(name, before)
		} else {
			_ = os.Unsetenv(name)
		}
	}
}

func (w *world) startCluster(ctx context.Context) (err error) {
	for _, build := range []func() (string, error){baseline.Binary, sidecar.Binary} { // starting them is timed
		if _, err := build(); err != nil {
			return err
		}
	}
	if w.client, err = admin.NewClient(w.cluster.Kubeconfig()); err != nil {
		return err
	}
	if w.kubeconfig, err = sidecar.ServiceAccount(ctx, w.cluster); err != nil {
		return err
	}
	if err := fleet.ApplyKwokStage(ctx, w.cluster, "node/fast/node-initialize.yaml"); err != nil {
		return err
	}
	if _, err := w.cluster.Kubectl(ctx, "apply", "-f", filepath.Join(sidecar.Root(), "stages/pod/fast/pod-ready.yaml")); err != nil {
		return err
	}
	if err := fleet.Configure(ctx, w.client, fleet.Template); err != nil {
		return err
	}
	watching, cancel := context.WithCancel(ctx)
	w.cancel = cancel
	if w.events, err = fleet.WatchEvents(watching, w.client); err != nil {
		return err
	}
	if w.pods, err = fleet.WatchPods(watching, w.client); err != nil {
		return err
	}
	w.events.Progress, w.pods.Progress = printProgress, printProgress
	return nil
}

func (w *world) stopCluster() error {
	w.cancel()
	return w.cluster.Stop()
}

func printProgress(what string, have, want int) {
	fmt.Fprintf(os.Stderr, "    %d of %d %s\n", have, want, what)
}

// startSidecar starts a sidecar, which is ready when this returns. It has the memory that docs/performance.md tells users to
// give it for so many nodes.
func (w *world) startSidecar(ctx context.Context, arguments ...string) (*sidecar.Process, error) {
	const enough = 15_000 // for what the manifests set
	if w.nodes > enough {
		defer setVariable("GOMEMLIMIT", fmt.Sprintf("%dMiB", 200+15*(w.nodes-enough)/1000))()
	}
	return fleet.StartSidecar(ctx, w.cluster, w.kubeconfig, arguments...)
}

// inParallel makes objects, tells how far it is, and with an error how far it
// came.
func inParallel(what string, count int, f func(i int) error) error {
	fmt.Fprintf(os.Stderr, "  Creating %d %s ...\n", count, what)
	start := time.Now()
	var made atomic.Int64
	done := make(chan struct{})
	defer close(done)
	go func() {
		tick := time.NewTicker(5 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				printProgress(what, int(made.Load()), count)
			}
		}
	}()
	err := fleet.InParallel(count, func(i int) error {
		if err := f(i); err != nil {
			return err
		}
		made.Add(1)
		return nil
	})
	if err != nil {
		return fmt.Errorf("create %d %s, %d were made in %s: %w", count, what, made.Load(), time.Since(start).Round(time.Second), err)
	}
	return nil
}
