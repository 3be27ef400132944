package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/internal/fleet"
	"github.com/kwok-dra/kwok-dra/test/perf/pairs"
)

// metric is a figure of a round.
type metric struct {
	key, title, unit string
	// grows says that more is better.
	grows bool
	// paced says that it means nothing where the rounds' own writer was the limit.
	paced bool
}

// The keys of the metrics of components end in one of these.
const (
	cpuSuffix    = "CPU"
	memorySuffix = "Memory"
)

// metrics are what is compared.
var metrics = []metric{
	{key: "podRate", title: "Pods", unit: "/s", grows: true, paced: true},
	{key: "allocationP50", title: "created to bound, p50", unit: "ms", paced: true},
	{key: "allocationP99", title: "created to bound, p99", unit: "ms", paced: true},
	{key: "startP50", title: "created to running, p50", unit: "ms", paced: true},
	{key: "startP99", title: "created to running, p99", unit: "ms", paced: true},
	{key: "scheduler" + cpuSuffix, title: "CPU of kube-scheduler", unit: "ms/Pod"},
	{key: "apiServer" + cpuSuffix, title: "CPU of kube-apiserver", unit: "ms/Pod"},
	{key: "controllerManager" + cpuSuffix, title: "CPU of kube-controller-manager", unit: "ms/Pod"},
	{key: "scheduler" + memorySuffix, title: "memory of kube-scheduler", unit: "MiB"},
	{key: "apiServer" + memorySuffix, title: "memory of kube-apiserver", unit: "MiB"},
	{key: "controllerManager" + memorySuffix, title: "memory of kube-controller-manager", unit: "MiB"},
	{key: "bytesPerNode", title: "Node and slices in etcd", unit: "bytes/node"},
}

// measured are the components of which CPU and memory are read, by the first part of the keys.
var measured = map[string]string{
	"scheduler": cluster.Scheduler, "apiServer": cluster.APIServer, "controllerManager": cluster.ControllerManager,
}

// sample is what a round has measured, by the keys of metrics.
type sample map[string]float64

// pace is how a round's own writer did, and how busy the machine was.
type pace struct {
	// Creating is the part of the time until the last Pod was bound in which Pods were still
	// being created.
	Creating float64 `json:"creating"`
	// Own and Others are the shares of all processors that this process took, and that processes
	// took which belong to neither it nor the cluster.
	Own    float64 `json:"own"`
	Others float64 `json:"others"`
}

// runRound creates the Pods of a round at once, waits until all run, and deletes them.
func (w *world) runRound(ctx context.Context) (sample, pace, error) {
	w.rounds++
	w.pods.Forget()
	before, err := w.readUsage()
	if err != nil {
		return nil, pace{}, err
	}
	created := make([]time.Time, w.shape.Pods)
	name := func(i int) string { return fmt.Sprintf("round-%d-%d", w.rounds, i) }
	started := time.Now()
	err = fleet.InParallel(w.shape.Pods, func(i int) error {
		template := corev1.PodResourceClaim{ResourceClaimTemplateName: new(claimTemplate)}
		created[i] = time.Now()
		_, err := w.client.CoreV1().Pods(namespace).Create(ctx, fleet.NewPod(namespace, name(i), corev1.DefaultSchedulerName, template), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return nil, pace{}, fmt.Errorf("create Pods: %w", err)
	}
	creating := time.Since(started)
	if _, _, err := w.pods.Await(ctx, fleet.Running, w.shape.Pods); err != nil {
		return nil, pace{}, err
	}
	after, err := w.readUsage()
	if err != nil {
		return nil, pace{}, err
	}
	bound, running := w.pods.Times(fleet.Bound), w.pods.Times(fleet.Running)
	var allocation, start []float64
	var last time.Time
	for i := range created {
		key := namespace + "/" + name(i)
		allocation = append(allocation, pairs.Milliseconds(bound[key].Sub(created[i])))
		start = append(start, pairs.Milliseconds(running[key].Sub(created[i])))
		if bound[key].After(last) {
			last = bound[key]
		}
	}
	until := last.Sub(started)
	s := sample{
		"podRate":       float64(w.shape.Pods) / until.Seconds(),
		"allocationP50": pairs.Quantile(allocation, 0.5), "allocationP99": pairs.Quantile(allocation, 0.99),
		"startP50": pairs.Quantile(start, 0.5), "startP99": pairs.Quantile(start, 0.99),
		"bytesPerNode": w.bytesPerNode,
	}
	for key, component := range measured {
		s[key+cpuSuffix] = pairs.Milliseconds(after.cpu[component]-before.cpu[component]) / float64(w.shape.Pods)
		s[key+memorySuffix] = after.memory[component]
	}
	p := after.paceSince(before)
	p.Creating = min(1, creating.Seconds()/until.Seconds())
	if err := fleet.DeletePods(ctx, w.client, namespace); err != nil {
		return nil, pace{}, err
	}
	return s, p, w.awaitCalm(ctx)
}

// awaitCalm waits until the cluster has done what a round has left to it, or for some seconds.
func (w *world) awaitCalm(ctx context.Context) error {
	const interval, limit, calm = 200 * time.Millisecond, 5 * time.Second, 0.2
	before, err := w.readUsage()
	for start := time.Now(); err == nil && time.Since(start) < limit; {
		if err := fleet.Pause(ctx, interval); err != nil {
			return err
		}
		var after usage
		if after, err = w.readUsage(); err == nil && (after.totalCPU()-before.totalCPU()).Seconds() < calm*after.at.Sub(before.at).Seconds() {
			return nil
		}
		before = after
	}
	return err
}
