package main

import (
	"context"
	"fmt"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/fleet"
	"github.com/kwok-dra/kwok-dra/test/sidecar"
)

func (b *bench) createFleet(ctx context.Context) error {
	err := fleet.InParallel(b.nodes, func(i int) error {
		node := fleet.NewNode(fmt.Sprintf("fleet-%d", i))
		if i%10 == 0 {
			node.Labels[schedulableLabel] = "true"
		}
		_, err := b.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("create nodes: %w", err)
	}
	return b.events.AwaitReady(ctx, b.nodes)
}

func (b *bench) deleteNodes(ctx context.Context, kind string) error {
	return fleet.InParallel(b.newNodes, func(i int) error {
		return b.client.CoreV1().Nodes().Delete(ctx, fmt.Sprintf("%s-%d", kind, i), metav1.DeleteOptions{})
	})
}

// clear deletes all slices.
func (b *bench) clear(ctx context.Context) error {
	if err := b.client.ResourceV1().ResourceSlices().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return fmt.Errorf("delete slices: %w", err)
	}
	if err := b.events.AwaitSlices(ctx, 0); err != nil {
		return fmt.Errorf("after deleting all slices: %w", err)
	}
	return nil
}

func (b *bench) startSidecar(ctx context.Context, documents string) (*sidecar.Process, error) {
	if err := fleet.Configure(ctx, b.client, documents); err != nil {
		return nil, err
	}
	return fleet.StartSidecar(ctx, b.cluster, b.kubeconfig)
}

// publishBySidecar has a template come while the sidecar runs.
func (b *bench) publishBySidecar(ctx context.Context) (time.Duration, error) {
	process, err := b.startSidecar(ctx, "")
	if err != nil {
		return 0, err
	}
	if err := fleet.Configure(ctx, b.client, fleet.Template); err != nil {
		return 0, err
	}
	took, err := b.events.Published(ctx, b.nodes)
	if err != nil {
		return 0, err
	}
	if b.report.publishCPU, err = process.CPUTime(); err != nil {
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
	err := fleet.InParallel(len(b.report.slices), func(i int) error {
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
	took, err := b.events.Published(ctx, b.nodes)
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
	if err := fleet.RestartKwok(ctx, b.cluster); err != nil {
		return 0, err
	}
	took, err := b.events.Published(ctx, b.nodes)
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
