package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/sidecar"
)

func fakeNode(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name:        name,
		Labels:      map[string]string{corev1.LabelHostname: name, corev1.LabelInstanceTypeStable: "p5.48xlarge"},
		Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
	}}
}

// inParallel runs f for 0 to count-1 by the workers.
func inParallel(count int, f func(i int) error) error {
	var running sync.WaitGroup
	errs := make([]error, workers)
	for worker := range workers {
		running.Go(func() {
			for i := worker; i < count && errs[worker] == nil; i += workers {
				errs[worker] = f(i)
			}
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

func (b *bench) createFleet(ctx context.Context) error {
	err := inParallel(b.nodes, func(i int) error {
		node := fakeNode(fmt.Sprintf("fleet-%d", i))
		if i%10 == 0 {
			node.Labels[schedulableLabel] = "true"
		}
		_, err := b.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("create nodes: %w", err)
	}
	return b.events.awaitReady(ctx, b.nodes)
}

func (b *bench) deleteNodes(ctx context.Context, kind string) error {
	return inParallel(b.newNodes, func(i int) error {
		return b.client.CoreV1().Nodes().Delete(ctx, fmt.Sprintf("%s-%d", kind, i), metav1.DeleteOptions{})
	})
}

// clear deletes all slices.
func (b *bench) clear(ctx context.Context) error {
	if err := b.client.ResourceV1().ResourceSlices().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return fmt.Errorf("delete slices: %w", err)
	}
	if err := b.events.awaitSlices(ctx, 0); err != nil {
		return fmt.Errorf("after deleting all slices: %w", err)
	}
	return nil
}

const configMapName = "kwok-dra"

// configure writes the sidecar's ConfigMap.
func (b *bench) configure(ctx context.Context, documents string) error {
	configMaps := b.client.CoreV1().ConfigMaps("default")
	empty := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: configMapName}}
	if _, err := configMaps.Create(ctx, empty, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create ConfigMap: %w", err)
	}
	patch, err := json.Marshal(map[string]any{"data": map[string]string{"templates.yaml": documents}})
	if err != nil {
		return fmt.Errorf("encode ConfigMap: %w", err)
	}
	if _, err := configMaps.Patch(ctx, configMapName, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("write ConfigMap: %w", err)
	}
	return nil
}

func (b *bench) startSidecar(ctx context.Context, documents string) (*sidecar.Process, error) {
	if err := b.configure(ctx, documents); err != nil {
		return nil, err
	}
	return sidecar.Start(ctx, b.cluster, "--kubeconfig", b.kubeconfig, "--config-map", "default/"+configMapName,
		fmt.Sprintf("--workers=%d", workers), "-v=0")
}

// publishBySidecar has a template come while the sidecar runs.
func (b *bench) publishBySidecar(ctx context.Context) (time.Duration, error) {
	process, err := b.startSidecar(ctx, "")
	if err != nil {
		return 0, err
	}
	if err := b.configure(ctx, template); err != nil {
		return 0, err
	}
	took, err := b.events.published(ctx, b.nodes)
	if err != nil {
		return 0, err
	}
	if b.report.publishCPU, err = cpuTime(process.PID()); err != nil {
		return 0, err
	}
	if err := process.Stop(); err != nil {
		return 0, err
	}
	list, err := b.client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, fmt.Errorf("list slices: %w", err)
	}
	b.report.slices = list.Items
	return took, b.clear(ctx)
}

// publishByRawWriter creates the very slices that the sidecar published.
func (b *bench) publishByRawWriter(ctx context.Context) (time.Duration, error) {
	err := inParallel(len(b.report.slices), func(i int) error {
		published := &b.report.slices[i]
		_, err := b.rawWriter.ResourceV1().ResourceSlices().Create(ctx, &resourcev1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: published.Name, Labels: published.Labels, OwnerReferences: published.OwnerReferences},
			Spec:       published.Spec,
		}, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("create slices: %w", err)
	}
	took, err := b.events.published(ctx, b.nodes)
	if err != nil {
		return 0, err
	}
	return took, b.clear(ctx)
}

// publishByStage starts kwok with the Stage: a Stage that comes while kwok runs
// does not reach nodes that are there until something changes them.
func (b *bench) publishByStage(ctx context.Context, round string) (time.Duration, error) {
	if err := b.applyStage(ctx, round); err != nil {
		return 0, err
	}
	if err := b.restartKwok(ctx); err != nil {
		return 0, err
	}
	took, err := b.events.published(ctx, b.nodes)
	if err != nil {
		return 0, err
	}
	return took, b.removeStage(ctx)
}

// removeStage takes the Stage and its slices away. Meanwhile kwok does not run,
// since it goes on with what it has begun.
func (b *bench) removeStage(ctx context.Context) error {
	if err := b.cluster.StopComponent(ctx, cluster.Kwok); err != nil {
		return err
	}
	if _, err := b.cluster.Kubectl(ctx, "delete", "stage", "publish-slice"); err != nil {
		return err
	}
	if err := b.clear(ctx); err != nil {
		return err
	}
	return b.cluster.StartComponent(ctx, cluster.Kwok)
}

func (b *bench) restartKwok(ctx context.Context) error {
	if err := b.cluster.StopComponent(ctx, cluster.Kwok); err != nil {
		return err
	}
	return b.cluster.StartComponent(ctx, cluster.Kwok)
}
