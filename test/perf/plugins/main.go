// Command plugins measures real DRA drivers on fake nodes: a process of the file driver for each
// node, all on this machine, which publish their slices and prepare the claims of Pods.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/internal/admin"
	"github.com/kwok-dra/kwok-dra/test/internal/fleet"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

func main() {
	w := &world{}
	flag.IntVar(&w.nodes, "nodes", 100, "fake nodes, each with a driver")
	flag.IntVar(&w.pods, "pods", 1000, "Pods, each with a claim of one device")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := w.runAll(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "plugins:", err)
		os.Exit(1)
	}
}

// world is a control plane with a fleet, and the drivers on it.
type world struct {
	nodes, pods int

	cluster  *cluster.Cluster
	client   kubernetes.Interface
	events   *fleet.Events
	prepared *fleet.PodEvents
	// folder has the folders of the nodes, and binary is the driver.
	folder, binary string
	sidecar        *sidecar.Process
	drivers        []*exec.Cmd
	figures        figures
}

// figures are what is measured.
type figures struct {
	published, prepared time.Duration
	// alone is the memory of kwok-dra without drivers, connected with all of them, and busy when
	// all Pods are prepared.
	alone, connected, busy memory
	// drivers is the resident memory of all drivers.
	drivers int64
}

// memory is what kwok-dra has.
type memory struct{ heap, resident int64 }

func (w *world) runAll(ctx context.Context) (err error) {
	if w.cluster, err = cluster.Start(ctx, cluster.Options{Output: os.Stderr}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.cluster.Stop()) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if w.folder, err = os.MkdirTemp("", "p"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(w.folder)) }()
	defer w.endDrivers()
	for _, step := range []struct {
		title string
		run   func(context.Context) error
	}{
		{fmt.Sprintf("Making %d nodes and building the driver", w.nodes), w.createNodes},
		{fmt.Sprintf("Publishing with %d drivers", w.nodes), w.startDrivers},
		{fmt.Sprintf("Preparing %d Pods", w.pods), w.preparePods},
	} {
		fmt.Fprintf(os.Stderr, "%s ...\n", step.title)
		if err := step.run(ctx); err != nil {
			return err
		}
	}
	return w.printReport(os.Stdout)
}

func (w *world) createNodes(ctx context.Context) (err error) {
	if w.client, err = admin.NewClient(w.cluster.Kubeconfig()); err != nil {
		return err
	}
	if w.prepared, err = fleet.WatchPods(ctx, w.client); err != nil {
		return err
	}
	if w.events, err = fleet.WatchEvents(ctx, w.client); err != nil {
		return err
	}
	w.binary = filepath.Join(w.folder, "file-driver")
	if err := sidecar.Build(filepath.Join(sidecar.Root(), "test"), w.binary, "./drivers/cmd/file-driver"); err != nil {
		return err
	}
	err = fleet.InParallel(w.nodes, func(i int) error {
		_, err := w.client.CoreV1().Nodes().Create(ctx, fleet.NewNode(nodeName(i)), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("create nodes: %w", err)
	}
	return w.events.AwaitReady(ctx, w.nodes)
}

func nodeName(number int) string { return fmt.Sprintf("n%d", number) }

// startDrivers starts kwok-dra and then all drivers.
func (w *world) startDrivers(ctx context.Context) error {
	var err error
	if w.sidecar, err = sidecar.Start(ctx, w.cluster, "--plugins-dir", w.folder, "-v=0", "--profiling"); err != nil {
		return err
	}
	if w.figures.alone, err = w.readMemory(ctx); err != nil {
		return err
	}
	began := time.Now()
	for i := range w.nodes {
		if err := w.startDriver(ctx, nodeName(i)); err != nil {
			return err
		}
	}
	if err := w.events.AwaitSlices(ctx, w.nodes); err != nil {
		return err
	}
	w.figures.published = time.Since(began)
	if err := w.awaitRegistered(ctx); err != nil {
		return err
	}
	for _, driver := range w.drivers {
		resident, err := sidecar.ResidentMemoryOf(driver.Process.Pid)
		if err != nil {
			return err
		}
		w.figures.drivers += resident
	}
	w.figures.connected, err = w.readMemory(ctx)
	return err
}

func (w *world) readMemory(ctx context.Context) (m memory, err error) {
	if m.heap, err = w.sidecar.HeapAfterCollection(ctx); err == nil {
		m.resident, err = w.sidecar.ResidentMemory()
	}
	return m, err
}

// startDriver starts the driver of a node, as soon as this has its folders.
func (w *world) startDriver(ctx context.Context, node string) error {
	root := filepath.Join(w.folder, node)
	for {
		if _, err := os.Stat(filepath.Join(root, "plugins")); err == nil {
			break
		}
		if err := fleet.Pause(ctx, 10*time.Millisecond); err != nil {
			return fmt.Errorf("wait for the folder of node %s: %w", node, err)
		}
	}
	driver := exec.Command(w.binary, "-driver", fleet.Driver, "-node", node, "-kubeconfig", w.cluster.Kubeconfig(), "-devices", strconv.Itoa(w.perNode()),
		"-registry", filepath.Join(root, "plugins_registry"), "-plugins", filepath.Join(root, "plugins"), "-cdi", filepath.Join(root, "cdi"))
	if err := driver.Start(); err != nil {
		return fmt.Errorf("start the driver of node %s: %w", node, err)
	}
	w.drivers = append(w.drivers, driver)
	return nil
}

// perNode is how many devices and Pods a node has.
func (w *world) perNode() int { return (w.pods + w.nodes - 1) / w.nodes }

func (w *world) endDrivers() {
	for _, driver := range w.drivers {
		_ = driver.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	}
	for _, driver := range w.drivers {
		_ = driver.Wait()
	}
}

// awaitRegistered waits until kwok-dra knows all drivers.
func (w *world) awaitRegistered(ctx context.Context) error {
	for {
		registered, err := w.sidecar.Metric(ctx, "kwok_dra_registered_plugins")
		if err != nil || int(registered) == w.nodes {
			return err
		}
		if err := fleet.Pause(ctx, 100*time.Millisecond); err != nil {
			return fmt.Errorf("wait for %d plugins, there are %v: %w", w.nodes, registered, err)
		}
	}
}

// preparePods binds Pods whose claims are allocated, so that no scheduler is the limit.
func (w *world) preparePods(ctx context.Context) error {
	const namespace = "pods"
	if err := fleet.CreateNamespace(ctx, w.client, namespace); err != nil {
		return err
	}
	w.prepared.Forget()
	err := fleet.InParallel(w.pods, func(i int) error {
		name, node := fmt.Sprint("pod-", i), nodeName(i%w.nodes)
		pod := fleet.NewPod(namespace, name, "nobody", corev1.PodResourceClaim{ResourceClaimName: &name})
		if err := fleet.CreateAllocated(ctx, w.client, pod, node, fmt.Sprint("file-", i/w.nodes)); err != nil {
			return err
		}
		return fleet.Bind(ctx, w.client, pod, node)
	})
	if err != nil {
		return err
	}
	first, last, err := w.prepared.Await(ctx, fleet.Prepared, w.pods)
	if err != nil {
		return err
	}
	w.figures.prepared = last.Sub(first)
	w.figures.busy, err = w.readMemory(ctx)
	return err
}

func (w *world) printReport(out io.Writer) error {
	f, table := w.figures, tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	mebibytes := func(bytes int64) float64 { return float64(bytes) / sidecar.MiB }
	perPlugin := func(bytes int64) float64 { return mebibytes(bytes) / float64(w.nodes) }
	fmt.Fprintf(out, "%d fake nodes with a process of the file driver each, %d Pods (%s)\n", w.nodes, w.pods, fleet.Machine(w.cluster))
	fmt.Fprintf(table, "all slices published after the first driver's start\t%.1f s\n", f.published.Seconds())
	fmt.Fprintf(table, "%d Pods prepared, from the first to the last\t%.1f s (%.0f Pods/s)\n", w.pods, f.prepared.Seconds(), float64(w.pods)/f.prepared.Seconds())
	fmt.Fprintf(table, "resident memory of a driver\t%.1f MiB\n", perPlugin(f.drivers))
	for _, line := range []struct {
		title string
		m     memory
	}{{"alone", f.alone}, {"all drivers connected", f.connected}, {"all Pods prepared", f.busy}} {
		fmt.Fprintf(table, "memory of kwok-dra, %s\theap %.1f MiB, resident %.1f MiB\n", line.title, mebibytes(line.m.heap), mebibytes(line.m.resident))
	}
	fmt.Fprintf(table, "memory of kwok-dra for a plugin (aim: at most 1 MiB)\theap %.2f MiB, resident %.2f MiB\n",
		perPlugin(f.connected.heap-f.alone.heap), perPlugin(f.connected.resident-f.alone.resident))
	return table.Flush()
}
