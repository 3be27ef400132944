package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/internal/fleet"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
	"github.com/kwok-dra/kwok-dra/test/perf/pairs"
)

// schedulableLabel is on a tenth of the fleet. The scheduler's work grows with the
// nodes that a Pod might go to, and it would take minutes for all of them.
const schedulableLabel = "kwok-dra-bench/schedulable"

// scheduling has Pods go through the real scheduler, with kwok-dra and its Stage,
// and on stock kwok, where nothing prepares.
type scheduling struct {
	*world

	ours, stock schedulingWay
}

// schedulingWay is a way to have Pods run.
type schedulingWay struct {
	way

	// cpuBy has the CPU of each process of the cluster in each round, in seconds.
	cpuBy map[string][]float64
}

func newScheduling(w *world) part {
	s := &scheduling{world: w}
	s.ours = schedulingWay{way: way{name: "kwok-dra", run: s.withSidecar}, cpuBy: map[string][]float64{}}
	s.stock = schedulingWay{way: way{name: "stock kwok", run: s.onStock}, cpuBy: map[string][]float64{}}
	return part{
		title: fmt.Sprintf("Scheduling %d Pods, %d rounds of kwok-dra and stock kwok", w.scheduled, w.rounds),
		run:   s.run,
		print: s.print,
		takes: time.Duration(2*w.rounds*w.scheduled) * 30 * time.Millisecond,
	}
}

// run begins with a warm-up, as that of the scheduler's first Pods takes longer.
func (s *scheduling) run(ctx context.Context) error {
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: fleet.Driver}, Spec: resourcev1.DeviceClassSpec{
		Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", fleet.Driver)}}},
	}}
	if _, err := s.client.ResourceV1().DeviceClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create DeviceClass: %w", err)
	}
	if err := s.playStockStage(ctx); err != nil {
		return err
	}
	if _, err := s.schedulePods(ctx, "warm-up-scheduling", &schedulingWay{cpuBy: map[string][]float64{}}, 0); err != nil {
		return fmt.Errorf("schedule for the first time: %w", err)
	}
	c := comparison{unit: "Pod", count: s.scheduled, ways: []*way{&s.ours.way, &s.stock.way}}
	return c.run(ctx, s.rounds)
}

func (s *scheduling) playStockStage(ctx context.Context) error {
	if err := fleet.ApplyKwokStage(ctx, s.cluster, "pod/fast/pod-ready.yaml"); err != nil {
		return err
	}
	return fleet.RestartKwok(ctx, s.cluster)
}

func (s *scheduling) onStock(ctx context.Context, round int) (sample, error) {
	if err := s.playStockStage(ctx); err != nil {
		return sample{}, err
	}
	return s.schedulePods(ctx, fmt.Sprintf("stock-%d", round), &s.stock, 0)
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
	taken, err := s.schedulePods(ctx, fmt.Sprintf("ours-%d", round), &s.ours, process.PID())
	if err != nil {
		return taken, err
	}
	return taken, process.Stop()
}

// schedulePods creates Pods and takes the time until the last of them runs, and the
// CPU of the cluster until then. The sidecar is a process number, or 0.
func (s *scheduling) schedulePods(ctx context.Context, namespace string, by *schedulingWay, sidecarPID int) (sample, error) {
	if err := s.createNamespace(ctx, namespace); err != nil {
		return sample{}, err
	}
	_, err := s.client.ResourceV1().ResourceClaimTemplates(namespace).Create(ctx, &resourcev1.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: "gpu"}, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: fleet.ClaimSpec()},
	}, metav1.CreateOptions{})
	if err != nil {
		return sample{}, fmt.Errorf("create ResourceClaimTemplate: %w", err)
	}
	before, err := s.readCPU(sidecarPID)
	if err != nil {
		return sample{}, err
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
	after, err := s.readCPU(sidecarPID)
	if err != nil {
		return sample{}, err
	}
	taken := sample{took: last.Sub(start)}
	for name := range after {
		used := after[name] - before[name]
		taken.cpu += used
		by.cpuBy[name] = append(by.cpuBy[name], used.Seconds())
	}
	return taken, fleet.DeletePods(ctx, s.client, namespace)
}

// readCPU is the CPU that each process of the cluster has taken, and the sidecar.
func (s *scheduling) readCPU(sidecarPID int) (map[string]time.Duration, error) {
	pids, err := s.cluster.ComponentPIDs()
	if err != nil {
		return nil, err
	}
	if sidecarPID != 0 {
		pids["kwok-dra"] = sidecarPID
	}
	return sidecar.CPUTimesOf(pids)
}

func (s *scheduling) print(out io.Writer) {
	ours, stock := pairs.Of(s.ours.took), pairs.Of(s.stock.took)
	fmt.Fprintf(out, "\n%d Pods through the scheduler\n\tkwok-dra\tstock kwok\tratio\trounds\taim\n", s.scheduled)
	fmt.Fprintf(out, "created to all Running, s\t%.2f\t%.2f\t%s\t%d\t<= 1.2 of stock kwok\n",
		ours.Median, stock.Median, pairs.Ratio(s.ours.took, s.stock.took), ours.Rounds)
	perPod := func(seconds []float64) float64 { return 1000 * pairs.Of(seconds).Median / float64(s.scheduled) }
	fmt.Fprintf(out, "CPU of all, per Pod, ms\t%.2f\t%.2f\t%s\n", perPod(s.ours.cpu), perPod(s.stock.cpu), pairs.Ratio(s.ours.cpu, s.stock.cpu))
	for _, name := range slices.Sorted(maps.Keys(s.ours.cpuBy)) {
		ours, stock := s.ours.cpuBy[name], s.stock.cpuBy[name]
		fmt.Fprintf(out, "CPU of %s, per Pod, ms\t%.2f\t%.2f\t%s\n", name, perPod(ours), perPod(stock), pairs.Ratio(ours, stock))
	}
}
