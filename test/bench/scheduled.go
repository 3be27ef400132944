package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/fleet"
	"github.com/kwok-dra/kwok-dra/test/sidecar"
)

// scheduleRounds are few: with its default limit of requests, the scheduler takes
// most of a minute for 500 Pods.
const scheduleRounds = 2

// schedulableLabel is on a tenth of the fleet. The scheduler's work grows with the
// nodes that a Pod might go to, and it would take minutes for all of them.
const schedulableLabel = "kwok-dra-bench/schedulable"

func (b *bench) createNamespace(ctx context.Context, name string) error {
	defer b.pods.Forget()
	return fleet.CreateNamespace(ctx, b.client, name)
}

// schedulePods has Pods go through the real scheduler, in turn on stock kwok,
// where nothing prepares, and with kwok-dra and its Stage.
func (b *bench) schedulePods(ctx context.Context) error {
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: fleet.Driver}, Spec: resourcev1.DeviceClassSpec{
		Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", fleet.Driver)}}},
	}}
	if _, err := b.client.ResourceV1().DeviceClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create DeviceClass: %w", err)
	}
	for round := range min(b.rounds, scheduleRounds) {
		stock, err := b.scheduleOnStock(ctx, fmt.Sprintf("stock-%d", round))
		if err != nil {
			return fmt.Errorf("schedule on stock kwok: %w", err)
		}
		ours, err := b.scheduleWithSidecar(ctx, fmt.Sprintf("ours-%d", round))
		if err != nil {
			return fmt.Errorf("schedule with kwok-dra: %w", err)
		}
		b.report.schedule.stage.rates = append(b.report.schedule.stage.rates, stock)
		b.report.schedule.sidecar.rates = append(b.report.schedule.sidecar.rates, ours)
		fmt.Fprintf(os.Stderr, "  round %d: seconds to Running: kwok-dra %.2f, stock kwok %.2f\n", round+1, ours.Seconds(), stock.Seconds())
	}
	return nil
}

func (b *bench) scheduleOnStock(ctx context.Context, namespace string) (time.Duration, error) {
	if err := fleet.ApplyKwokStage(ctx, b.cluster, "pod/fast/pod-ready.yaml"); err != nil {
		return 0, err
	}
	if err := fleet.RestartKwok(ctx, b.cluster); err != nil {
		return 0, err
	}
	return b.schedule(ctx, namespace)
}

func (b *bench) scheduleWithSidecar(ctx context.Context, namespace string) (time.Duration, error) {
	if _, err := b.cluster.Kubectl(ctx, "apply", "-f", filepath.Join(sidecar.Root(), "stages/pod/fast/pod-ready.yaml")); err != nil {
		return 0, err
	}
	if err := fleet.RestartKwok(ctx, b.cluster); err != nil {
		return 0, err
	}
	process, err := b.startSidecar(ctx, plain)
	if err != nil {
		return 0, err
	}
	took, err := b.schedule(ctx, namespace)
	if err != nil {
		return 0, err
	}
	return took, process.Stop()
}

// schedule creates Pods and returns the time until the last of them runs.
func (b *bench) schedule(ctx context.Context, namespace string) (time.Duration, error) {
	if err := b.createNamespace(ctx, namespace); err != nil {
		return 0, err
	}
	_, err := b.client.ResourceV1().ResourceClaimTemplates(namespace).Create(ctx, &resourcev1.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: "gpu"}, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: fleet.ClaimSpec()},
	}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("create ResourceClaimTemplate: %w", err)
	}
	start := time.Now()
	err = fleet.InParallel(b.scheduled, func(i int) error {
		template := corev1.PodResourceClaim{ResourceClaimTemplateName: new("gpu")}
		pod := fleet.NewPod(namespace, fmt.Sprint("pod-", i), corev1.DefaultSchedulerName, template)
		pod.Spec.NodeSelector = map[string]string{schedulableLabel: "true"}
		_, err := b.client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("create pods: %w", err)
	}
	_, last, err := b.pods.Await(ctx, fleet.Running, b.scheduled)
	if err != nil {
		return 0, err
	}
	return last.Sub(start), fleet.DeletePods(ctx, b.client, namespace)
}
