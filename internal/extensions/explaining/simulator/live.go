package simulator

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory/taintrules"
	"github.com/kwok-dra/kwok-dra/internal/extensions/util/groupclient"
)

// Read reads the state of a cluster, and all of its Pods, of which the World has none yet.
func Read(ctx context.Context, client groupclient.Interface) (*World, []*corev1.Pod, error) {
	in := &World{IsLive: true}
	all := metav1.ListOptions{ResourceVersion: "0"} // from the cache of the API server
	nodes, err := client.CoreV1().Nodes().List(ctx, all)
	if err != nil {
		return nil, nil, fmt.Errorf("list nodes: %w", err)
	}
	in.Nodes = pointersTo(nodes.Items)
	slices, err := client.ResourceV1().ResourceSlices().List(ctx, all)
	if err != nil {
		return nil, nil, fmt.Errorf("list resourceslices: %w", err)
	}
	in.Slices = pointersTo(slices.Items)
	classes, err := client.ResourceV1().DeviceClasses().List(ctx, all)
	if err != nil {
		return nil, nil, fmt.Errorf("list deviceclasses: %w", err)
	}
	in.Classes = pointersTo(classes.Items)
	claims, err := client.ResourceV1().ResourceClaims("").List(ctx, all)
	if err != nil {
		return nil, nil, fmt.Errorf("list resourceclaims: %w", err)
	}
	in.Claims = pointersTo(claims.Items)
	templates, err := client.ResourceV1().ResourceClaimTemplates("").List(ctx, all)
	if err != nil {
		return nil, nil, fmt.Errorf("list resourceclaimtemplates: %w", err)
	}
	in.ClaimTemplates = pointersTo(templates.Items)
	pods, err := client.CoreV1().Pods("").List(ctx, all)
	if err != nil {
		return nil, nil, fmt.Errorf("list pods: %w", err)
	}
	in.TaintRules, in.Unseen, err = taintrules.List(ctx, client)
	return in, pointersTo(pods.Items), err
}

func pointersTo[T any](items []T) []*T {
	all := make([]*T, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}
