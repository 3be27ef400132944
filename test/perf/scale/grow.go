package main

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/internal/fleet"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// growFleet makes the fleet that large and measures it.
func (w *world) growFleet(ctx context.Context, nodes int, rest time.Duration) (figures, error) {
	f := figures{Nodes: nodes, Devices: nodes * fleet.Devices, Claims: nodes * w.podsPerNode}
	before := w.nodes
	if err := w.createNodes(ctx, before, nodes); err != nil {
		return f, err
	}
	w.nodes = nodes
	if err := w.measurePublishing(ctx, nodes-before, &f); err != nil {
		return f, fmt.Errorf("publish: %w", err)
	}
	if err := w.createPods(ctx, before, nodes); err != nil {
		return f, err
	}
	if err := w.measurePreparing(ctx, (nodes-before)*w.podsPerNode, &f); err != nil {
		return f, fmt.Errorf("prepare: %w", err)
	}
	if err := w.measureRestarts(ctx, &f.Restart); err != nil {
		return f, fmt.Errorf("restart: %w", err)
	}
	if err := w.measureRest(ctx, rest, &f); err != nil {
		return f, fmt.Errorf("rest: %w", err)
	}
	if err := w.measureAsking(ctx, &f.Asking); err != nil {
		return f, fmt.Errorf("ask: %w", err)
	}
	if err := w.createLeases(ctx, before, nodes); err != nil {
		return f, err
	}
	if err := w.measureLeases(ctx, rest, &f); err != nil {
		return f, fmt.Errorf("leases: %w", err)
	}
	return f, nil
}

func nodeName(i int) string { return fmt.Sprintf("fleet-%05d", i) }

// createNodes makes nodes as kwok plays them. It plays the first; the others are
// created as that one is, in the way of a kubelet, or kwok would be the limit.
func (w *world) createNodes(ctx context.Context, from, to int) error {
	if w.played == nil {
		if err := w.createPlayed(ctx, nodeName(from)); err != nil {
			return err
		}
		from++
	}
	err := inParallel("nodes", to-from, func(i int) error {
		node := fleet.NewNode(nodeName(from + i))
		node.Status = *w.played.DeepCopy()
		for i := range node.Status.Addresses {
			if address := &node.Status.Addresses[i]; address.Type == corev1.NodeHostName {
				address.Address = node.Name
			}
		}
		_, err := w.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	return w.events.AwaitReady(ctx, to)
}

// createPlayed makes a node and keeps what kwok makes of it.
func (w *world) createPlayed(ctx context.Context, name string) error {
	nodes := w.client.CoreV1().Nodes()
	if _, err := nodes.Create(ctx, fleet.NewNode(name), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create node: %w", err)
	}
	if err := w.events.AwaitReady(ctx, 1); err != nil {
		return err
	}
	node, err := nodes.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get node: %w", err)
	}
	w.played = &node.Status
	return nil
}

// createPods makes bound Pods whose claims are allocated, on the nodes of these
// numbers.
func (w *world) createPods(ctx context.Context, from, to int) error {
	namespace := fmt.Sprintf("fleet-%d", to)
	if err := fleet.CreateNamespace(ctx, w.client, namespace); err != nil {
		return err
	}
	w.pods.Forget()
	count := (to - from) * w.podsPerNode
	err := inParallel("Pods with a claim", count, func(i int) error {
		name := fmt.Sprint("pod-", i)
		pod := fleet.NewPod(namespace, name, "nobody", corev1.PodResourceClaim{ResourceClaimName: &name})
		pod.Spec.NodeName = nodeName(from + i/w.podsPerNode)
		return fleet.CreateAllocated(ctx, w.client, pod, pod.Spec.NodeName, fmt.Sprint("gpu-", i%w.podsPerNode))
	})
	if err != nil {
		return err
	}
	_, _, err = w.pods.Await(ctx, fleet.Bound, count)
	return err
}

// measurePublishing starts a sidecar where nodes are without slices.
func (w *world) measurePublishing(ctx context.Context, count int, f *figures) error {
	fmt.Fprintf(os.Stderr, "  Publishing %d nodes ...\n", count)
	w.events.Forget()
	start := time.Now()
	process, err := w.startSidecar(ctx)
	if err != nil {
		return err
	}
	took, err := w.events.Published(ctx, w.nodes)
	if err != nil {
		return err
	}
	f.Writing.PublishRate = float64(count) / took.Seconds()
	if f.Writing.PublishCPU, err = cpuSeconds(process); err != nil {
		return err
	}
	f.Writing.PublishCore = f.Writing.PublishCPU / time.Since(start).Seconds()
	if err := f.Memory.sawPeak(process); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "  Published %.0f nodes/s\n", f.Writing.PublishRate)
	return process.Stop()
}

func cpuSeconds(process *sidecar.Process) (float64, error) {
	used, err := process.CPUTime()
	return used.Seconds(), err
}

// measurePreparing starts a sidecar where Pods wait.
func (w *world) measurePreparing(ctx context.Context, count int, f *figures) error {
	fmt.Fprintf(os.Stderr, "  Preparing %d Pods ...\n", count)
	start := time.Now()
	process, err := w.startSidecar(ctx)
	if err != nil {
		return err
	}
	first, last, err := w.pods.Await(ctx, fleet.Prepared, count)
	if err != nil {
		return err
	}
	f.Writing.PrepareRate = float64(count) / last.Sub(first).Seconds()
	if f.Writing.PrepareCPU, err = cpuSeconds(process); err != nil {
		return err
	}
	f.Writing.PrepareCore = f.Writing.PrepareCPU / time.Since(start).Seconds()
	fmt.Fprintf(os.Stderr, "  Prepared %.0f Pods/s\n", f.Writing.PrepareRate)
	if _, _, err := w.pods.Await(ctx, fleet.Running, count); err != nil {
		return err
	}
	if err := w.awaitIdle(ctx, process); err != nil {
		return err
	}
	if f.Memory.Prepared, err = process.ResidentMemory(); err != nil {
		return err
	}
	if err := f.Memory.sawPeak(process); err != nil {
		return err
	}
	return process.Stop()
}

// The sidecar has settled when in settleWindow it takes less than settleCPU.
const (
	settleWindow = 2 * time.Second
	settleCPU    = 60 * time.Millisecond
	settleLimit  = 2 * time.Minute
)

// awaitIdle waits until the sidecar has nothing more to do.
func (w *world) awaitIdle(ctx context.Context, process *sidecar.Process) error {
	start := time.Now()
	before, err := process.CPUTime()
	if err != nil {
		return err
	}
	for time.Since(start) < settleLimit {
		if err := fleet.Pause(ctx, settleWindow); err != nil {
			return err
		}
		now, err := process.CPUTime()
		if err != nil {
			return err
		}
		if now-before < settleCPU {
			return nil
		}
		before = now
	}
	return fmt.Errorf("wait for kwok-dra to come to rest: it is still busy after %s", settleLimit)
}
