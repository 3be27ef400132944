package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	coreinformers "k8s.io/client-go/informers/core/v1"
	resourceinformers "k8s.io/client-go/informers/resource/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	resourcelisters "k8s.io/client-go/listers/resource/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/kwok-dra/kwok-dra/test/internal/fleet"
)

// preparer prepares the Pods that it sees bound with allocated claims.
type preparer struct {
	*program

	pods   corelisters.PodLister
	claims resourcelisters.ResourceClaimLister
}

// watchingClaims prepares the Pods that it learns of. What it has written needs no
// second look.
func (p *program) watchingClaims(ctx context.Context) (writes, error) {
	c, q := newCaches(p.client), newQueue()
	sawPod := func(pod *corev1.Pod) {
		if !fleet.IsPrepared(pod) {
			q.Add(cache.MetaObjectToName(pod))
		}
	}
	pods := coreinformers.PodHandlerFuncs{AddFunc: sawPod, UpdateFunc: func(_, pod *corev1.Pod) { sawPod(pod) }}
	if _, err := c.pods.TypedInformer().AddTypedEventHandler(pods); err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	sawClaim := func(claim *resourcev1.ResourceClaim) {
		for _, user := range claim.Status.ReservedFor {
			if !showsPrepared(claim) {
				q.Add(cache.NewObjectName(claim.Namespace, user.Name))
			}
		}
	}
	claims := resourceinformers.ResourceClaimHandlerFuncs{AddFunc: sawClaim, UpdateFunc: func(_, claim *resourcev1.ResourceClaim) { sawClaim(claim) }}
	if _, err := c.claims.TypedInformer().AddTypedEventHandler(claims); err != nil {
		return nil, fmt.Errorf("watch claims: %w", err)
	}
	preparer := &preparer{p, c.pods.Lister(), c.claims.Lister()}
	return func(ctx context.Context) error {
		q.runWorkers(ctx, preparer.preparePod)
		return nil
	}, c.startAndSync(ctx)
}

// showsPrepared reports whether a claim shows that its devices are prepared.
func showsPrepared(claim *resourcev1.ResourceClaim) bool { return len(claim.Status.Devices) > 0 }

// preparePod prepares a Pod, its claims first.
func (p *preparer) preparePod(ctx context.Context, name cache.ObjectName) error {
	pod, err := p.pods.Pods(name.Namespace).Get(name.Name)
	if err != nil || fleet.IsPrepared(pod) {
		return unlessNotFound(err)
	}
	for _, reference := range pod.Spec.ResourceClaims {
		claim, err := p.claims.ResourceClaims(pod.Namespace).Get(*reference.ResourceClaimName)
		if err != nil || claim.Status.Allocation == nil {
			return unlessNotFound(err) // its event comes
		}
		if showsPrepared(claim) {
			continue
		}
		if err := p.writeClaimStatus(ctx, claim); err != nil {
			return err
		}
	}
	return p.writePodStatus(ctx, name.AsNamespacedName(), pod.UID)
}

// unlessNotFound returns an error unless it is that the cache has no such object.
func unlessNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
