package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	resourcev1ac "k8s.io/client-go/applyconfigurations/resource/v1"

	"github.com/kwok-dra/kwok-dra/test/fleet"
)

// plain is a template that takes no time to render: a sidecar that starts looks at
// all nodes, and that is not what is measured here.
const plain = `
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: ResourcePoolTemplate
metadata: {name: bench}
spec: {driver: gpu.example.com, devices: [{name: gpu, count: 8}]}
`

// prepareFleet has Pods prepared, in turn by kwok-dra and by the raw writer: one
// on each node, bound and with its claim allocated by hand, so that no scheduler
// is the limit. KWOK has no Stages for Pods here.
func (b *bench) prepareFleet(ctx context.Context) error {
	for round := range b.rounds + 1 {
		took, err := b.prepareBy(ctx, fmt.Sprintf("sidecar-%d", round), b.prepareBySidecar)
		if err != nil {
			return fmt.Errorf("prepare by kwok-dra: %w", err)
		}
		if round == 0 {
			continue // a warm-up
		}
		b.report.prepare.sidecar.rates = append(b.report.prepare.sidecar.rates, took)
		if took, err = b.prepareBy(ctx, fmt.Sprintf("raw-%d", round), b.prepareByRawWriter); err != nil {
			return fmt.Errorf("prepare by the raw writer: %w", err)
		}
		b.report.prepare.raw.rates = append(b.report.prepare.raw.rates, took)
		fmt.Fprintf(os.Stderr, "  round %d: pods/s: %s\n", round, b.report.prepare.lastRates(b.nodes))
	}
	return nil
}

// prepareBy makes the Pods, has them prepared, and deletes them.
func (b *bench) prepareBy(ctx context.Context, namespace string, prepare func(ctx context.Context, namespace string) (time.Duration, error)) (time.Duration, error) {
	if err := b.createNamespace(ctx, namespace); err != nil {
		return 0, err
	}
	err := fleet.InParallel(b.nodes, func(i int) error {
		return b.boundPod(ctx, namespace, fmt.Sprint("pod-", i), fmt.Sprintf("fleet-%d", i))
	})
	if err != nil {
		return 0, err
	}
	if _, _, err := b.pods.Await(ctx, fleet.Bound, b.nodes); err != nil {
		return 0, err
	}
	took, err := prepare(ctx, namespace)
	if err != nil {
		return 0, err
	}
	return took, fleet.DeletePods(ctx, b.client, namespace)
}

// boundPod makes a Pod with a claim as scheduler and controllers would leave it.
func (b *bench) boundPod(ctx context.Context, namespace, name, node string) error {
	pod := fleet.NewPod(namespace, name, "nobody", corev1.PodResourceClaim{ResourceClaimName: &name})
	if err := fleet.CreateAllocated(ctx, b.client, pod, node, "gpu-0"); err != nil {
		return err
	}
	return fleet.Bind(ctx, b.client, pod, node)
}

// prepareBySidecar starts the sidecar where all is bound.
func (b *bench) prepareBySidecar(ctx context.Context, _ string) (time.Duration, error) {
	process, err := b.startSidecar(ctx, plain)
	if err != nil {
		return 0, err
	}
	first, last, err := b.pods.Await(ctx, fleet.Prepared, b.nodes)
	if err != nil {
		return 0, err
	}
	if b.report.prepare.cpu, err = process.CPUTime(); err != nil {
		return 0, err
	}
	if b.report.prepare.memory, err = process.ResidentMemory(); err != nil {
		return 0, err
	}
	return last.Sub(first), process.Stop()
}

// prepareByRawWriter makes the writes that the sidecar makes.
func (b *bench) prepareByRawWriter(ctx context.Context, namespace string) (time.Duration, error) {
	err := fleet.InParallel(b.nodes, func(i int) error {
		name, node := fmt.Sprint("pod-", i), fmt.Sprintf("fleet-%d", i)
		entry := resourcev1ac.AllocatedDeviceStatus().WithDriver(fleet.Driver).WithPool(node).WithDevice("gpu-0").WithConditions(metav1ac.Condition().
			WithType("Ready").WithStatus(metav1.ConditionTrue).WithReason("Prepared").WithMessage("device is prepared").WithLastTransitionTime(metav1.Now()))
		claim := resourcev1ac.ResourceClaim(name, namespace).WithStatus(resourcev1ac.ResourceClaimStatus().WithDevices(entry))
		_, err := b.rawWriter.ResourceV1().ResourceClaims(namespace).ApplyStatus(ctx, claim, metav1.ApplyOptions{FieldManager: "raw-writer", Force: true})
		if err != nil {
			return fmt.Errorf("apply claim: %w", err)
		}
		_, err = b.rawWriter.CoreV1().Pods(namespace).Patch(ctx, name, types.StrategicMergePatchType, readyPatch(), metav1.PatchOptions{}, "status")
		return err
	})
	if err != nil {
		return 0, err
	}
	first, last, err := b.pods.Await(ctx, fleet.Prepared, b.nodes)
	return last.Sub(first), err
}

func readyPatch() []byte {
	patch, _ := json.Marshal(map[string]any{"status": corev1.PodStatus{Conditions: []corev1.PodCondition{{
		Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue, ObservedGeneration: 1, LastTransitionTime: metav1.Now(),
	}}}})
	return patch
}

// bindPods measures from a Pod's binding to its being prepared, both as a client
// sees them, one Pod at a time.
func (b *bench) bindPods(ctx context.Context) error {
	const namespace = "idle"
	if err := b.createNamespace(ctx, namespace); err != nil {
		return err
	}
	process, err := b.startSidecar(ctx, plain)
	if err != nil {
		return err
	}
	for i := range b.newNodes {
		if err := b.boundPod(ctx, namespace, fmt.Sprint("pod-", i), fmt.Sprintf("fleet-%d", i)); err != nil {
			return err
		}
		_, ready, err := b.pods.Await(ctx, fleet.Prepared, i+1)
		if err != nil {
			return err
		}
		_, bound, err := b.pods.Await(ctx, fleet.Bound, i+1)
		if err != nil {
			return err
		}
		b.report.prepare.sidecar.latencies = append(b.report.prepare.sidecar.latencies, ready.Sub(bound))
	}
	if err := process.Stop(); err != nil {
		return err
	}
	return fleet.DeletePods(ctx, b.client, namespace)
}
