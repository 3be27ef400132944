package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/sidecar"
)

// scheduleRounds are few: with its default limit of requests, the scheduler takes
// most of a minute for 500 Pods.
const scheduleRounds = 2

// schedulableLabel is on a tenth of the fleet. The scheduler's work grows with the
// nodes that a Pod might go to, and it would take minutes for all of them.
const schedulableLabel = "kwok-dra-bench/schedulable"

func (b *bench) createNamespace(ctx context.Context, name string) error {
	_, err := b.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create namespace: %w", err)
	}
	_, err = b.client.CoreV1().ServiceAccounts(name).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create ServiceAccount: %w", err)
	}
	b.pods.forget()
	return nil
}

// clearPods deletes the Pods and claims of a namespace, and waits until none is
// left.
func (b *bench) clearPods(ctx context.Context, namespace string) error {
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	if err := b.client.CoreV1().Pods(namespace).DeleteCollection(ctx, now, metav1.ListOptions{}); err != nil {
		return fmt.Errorf("delete pods: %w", err)
	}
	claims := b.client.ResourceV1().ResourceClaims(namespace)
	if err := claims.DeleteCollection(ctx, now, metav1.ListOptions{}); err != nil {
		return fmt.Errorf("delete claims: %w", err)
	}
	deadline := time.Now().Add(waitLimit)
	for time.Now().Before(deadline) {
		left, err := claims.List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil || len(left.Items) == 0 {
			return err
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return errors.New("wait for the claims to go: timed out")
}

// schedulePods has Pods go through the real scheduler, in turn on stock kwok,
// where nothing prepares, and with kwok-dra and its Stage.
func (b *bench) schedulePods(ctx context.Context) error {
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: driver}, Spec: resourcev1.DeviceClassSpec{
		Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", driver)}}},
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
	if err := b.applyKwokStage(ctx, "pod/fast/pod-ready.yaml"); err != nil {
		return 0, err
	}
	if err := b.restartKwok(ctx); err != nil {
		return 0, err
	}
	return b.schedule(ctx, namespace)
}

func (b *bench) scheduleWithSidecar(ctx context.Context, namespace string) (time.Duration, error) {
	if _, err := b.cluster.Kubectl(ctx, "apply", "-f", filepath.Join(sidecar.Root(), "stages/pod/fast/pod-ready.yaml")); err != nil {
		return 0, err
	}
	if err := b.restartKwok(ctx); err != nil {
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
		ObjectMeta: metav1.ObjectMeta{Name: "gpu"}, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: claimSpec()},
	}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("create ResourceClaimTemplate: %w", err)
	}
	start := time.Now()
	err = inParallel(b.scheduled, func(i int) error {
		template := corev1.PodResourceClaim{ResourceClaimTemplateName: new("gpu")}
		pod := newPod(fmt.Sprint("pod-", i), corev1.DefaultSchedulerName, template)
		pod.Spec.NodeSelector = map[string]string{schedulableLabel: "true"}
		_, err := b.client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("create pods: %w", err)
	}
	_, last, err := b.pods.await(ctx, b.pods.running, b.scheduled)
	if err != nil {
		return 0, err
	}
	return last.Sub(start), b.clearPods(ctx, namespace)
}
