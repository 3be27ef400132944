package main

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	resourceinformers "k8s.io/client-go/informers/resource/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// caches are plain informers on what the sidecar watches, by the same selectors.
// Only those run that were asked for.
type caches struct {
	nodes  coreinformers.TypedNodeInformer
	slices resourceinformers.TypedResourceSliceInformer
	pods   coreinformers.TypedPodInformer
	claims resourceinformers.TypedResourceClaimInformer

	factories []informers.SharedInformerFactory
}

func newCaches(client kubernetes.Interface) *caches {
	all := informers.NewSharedInformerFactory(client, 0)
	ours := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.LabelSelector = v1alpha1.ManagedByLabel + "=" + v1alpha1.ManagedByValue
	}))
	bound := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = "spec.nodeName!="
	}))
	return &caches{
		nodes:     coreinformers.ToTypedNodeInformer(all.Core().V1().Nodes()),
		slices:    resourceinformers.ToTypedResourceSliceInformer(ours.Resource().V1().ResourceSlices()),
		pods:      coreinformers.ToTypedPodInformer(bound.Core().V1().Pods()),
		claims:    resourceinformers.ToTypedResourceClaimInformer(all.Resource().V1().ResourceClaims()),
		factories: []informers.SharedInformerFactory{all, ours, bound},
	}
}

// startAndSync watches until ctx ends, and returns when the caches are complete.
func (c *caches) startAndSync(ctx context.Context) error {
	for _, factory := range c.factories {
		factory.StartWithContext(ctx)
	}
	for _, factory := range c.factories {
		if err := factory.WaitForCacheSyncWithContext(ctx).AsError(); err != nil {
			return fmt.Errorf("fill caches: %w", err)
		}
	}
	return nil
}

// fillCaches fills all caches.
func (p *program) fillCaches(ctx context.Context) (writes, error) {
	c := newCaches(p.client)
	c.nodes.Informer()
	c.slices.Informer()
	c.pods.Informer()
	c.claims.Informer()
	return func(context.Context) error { return nil }, c.startAndSync(ctx)
}
