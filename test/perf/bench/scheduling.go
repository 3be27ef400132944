package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/internal/fleet"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
	"github.com/kwok-dra/kwok-dra/test/perf/pairs"
)

// scheduleRounds are few: with its default limit of requests, the scheduler takes
// most of a minute for 500 Pods.
const scheduleRounds = 2

// schedulableLabel is on a tenth of the fleet. The scheduler's work grows with the
// nodes that a Pod might go to, and it would take minutes for all of them.
const schedulableLabel = "kwok-dra-bench/schedulable"

// scheduling has Pods go through the real scheduler, with kwok-dra and its Stage,
// and on stock kwok, where nothing prepares.
type scheduling struct {
	*world

	ours, stock *way
}

func newScheduling(w *world) part {
	s := &scheduling{world: w}
	s.ours = &way{name: "kwok-dra", run: s.withSidecar}
	s.stock = &way{name: "stock kwok", run: s.onStock}
	rounds := min(w.rounds, scheduleRounds)
	return part{
		title: fmt.Sprintf("Scheduling %d Pods, %d rounds of kwok-dra and stock kwok", w.scheduled, rounds),
		run:   s.run,
		print: s.print,
		takes: time.Duration(2*rounds*w.scheduled) * 110 * time.Millisecond,
	}
}

func (s *scheduling) run(ctx context.Context) error {
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: fleet.Driver}, Spec: resourcev1.DeviceClassSpec{
		Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", fleet.Driver)}}},
	}}
	if _, err := s.client.ResourceV1().DeviceClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create DeviceClass: %w", err)
	}
	c := comparison{unit: "Pod", count: s.scheduled, ways: []*way{s.ours, s.stock}}
	return c.run(ctx, min(s.rounds, scheduleRounds))
}

func (s *scheduling) onStock(ctx context.Context, round int) (sample, error) {
	if err := fleet.ApplyKwokStage(ctx, s.cluster, "pod/fast/pod-ready.yaml"); err != nil {
		return sample{}, err
	}
	if err := fleet.RestartKwok(ctx, s.cluster); err != nil {
		return sample{}, err
	}
	return s.schedulePods(ctx, fmt.Sprintf("stock-%d", round))
}

func (s *scheduling) withSidecar(ctx context.Context, round int) (sample, error) {
	if _, err := s.cluster.Kubectl(ctx, "apply", "-f", filepath.Join(sidecar.Root(), "stages/pod/fast/pod-ready.yaml")); err != nil {
		return sample{}, err
	}
	if err := fleet.RestartKwok(ctx, s.cluster); err != nil {
		return sample{}, err
	}
	process, err := s.startSidecar(ctx, plain)
	if err != nil {
		return sample{}, err
	}
	taken, err := s.schedulePods(ctx, fmt.Sprintf("ours-%d", round))
	if err != nil {
		return taken, err
	}
	return taken, process.Stop()
}

// schedulePods creates Pods and takes the time until the last of them runs.
func (s *scheduling) schedulePods(ctx context.Context, namespace string) (sample, error) {
	if err := s.createNamespace(ctx, namespace); err != nil {
		return sample{}, err
	}
	_, err := s.client.ResourceV1().ResourceClaimTemplates(namespace).Create(ctx, &resourcev1.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: "gpu"}, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: fleet.ClaimSpec()},
	}, metav1.CreateOptions{})
	if err != nil {
		return sample{}, fmt.Errorf("create ResourceClaimTemplate: %w", err)
	}
	start := time.Now()
	err = fleet.InParallel(s.scheduled, func(i int) error {
		template := corev1.PodResourceClaim{ResourceClaimTemplateName: new("gpu")}
		pod := fleet.NewPod(namespace, fmt.Sprint("pod-", i), corev1.DefaultSchedulerName, template)
		pod.Spec.NodeSelector = map[string]string{schedulableLabel: "true"}
		_, err := s.client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return sample{}, fmt.Errorf("create pods: %w", err)
	}
	_, last, err := s.pods.Await(ctx, fleet.Running, s.scheduled)
	if err != nil {
		return sample{}, err
	}
	return sample{took: last.Sub(start)}, fleet.DeletePods(ctx, s.client, namespace)
}

func (s *scheduling) print(out io.Writer) {
	ours, stock := pairs.Of(s.ours.took), pairs.Of(s.stock.took)
	fmt.Fprintf(out, "\n%d Pods through the scheduler\n\tkwok-dra\tstock kwok\tratio\trounds\taim\n", s.scheduled)
	fmt.Fprintf(out, "created to all Running, s\t%.2f\t%.2f\t%s\t%d\t<= 1.05 of stock kwok\n",
		ours.Median, stock.Median, pairs.Ratio(s.ours.took, s.stock.took), ours.Rounds)
}
