package main

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/test/internal/fleet"
)

// queue has the objects for which there may be something to write.
type queue struct {
	workqueue.TypedRateLimitingInterface[cache.ObjectName]
}

func newQueue() queue {
	// The default one also limits the retries of all objects together.
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](5*time.Millisecond, time.Minute)
	return queue{workqueue.NewTypedRateLimitingQueue(limiter)}
}

// runWorkers writes by workers, until ctx ends.
func (q queue) runWorkers(ctx context.Context, write func(ctx context.Context, name cache.ObjectName) error) {
	var running sync.WaitGroup
	for range fleet.Workers {
		running.Go(func() {
			for q.processNext(ctx, write) {
			}
		})
	}
	<-ctx.Done()
	q.ShutDown()
	running.Wait()
}

func (q queue) processNext(ctx context.Context, write func(ctx context.Context, name cache.ObjectName) error) bool {
	name, shutdown := q.Get()
	if shutdown {
		return false
	}
	defer q.Done(name)
	if err := write(ctx, name); err != nil {
		klog.FromContext(ctx).Info("Trying again", "object", name, "err", err)
		q.AddRateLimited(name)
		return true
	}
	q.Forget(name)
	return true
}
