package loop

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// A failed key is retried after 50 ms, 100 ms, 200 ms, and so on up to 20 s, since people who test something wait for
// it. Keys share no bucket, as in client-go's default limiter: it would hold back for hours a fleet that fails at once.
const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 20 * time.Second
)

// FailuresBeforeEvent is how many times in a row a key fails before an event reports it. Failures that a restart of the
// API server causes are over by then.
const FailuresBeforeEvent = 5

// stuckAfter is how long a key may be reconciled before the loop counts as stuck. The API server ends a request after a
// minute, and a key may take several.
const stuckAfter = 10 * time.Minute

// shutdownGrace is how long keys may still be reconciled when the loop is to end.
const shutdownGrace = 5 * time.Second

// Loop reconciles keys of type K. It is the queue of the keys, too: Add and AddAfter queue one, and NumRequeues is how
// many times in a row a key has failed.
type Loop[K comparable] struct {
	workqueue.TypedRateLimitingInterface[K]

	name      string
	reconcile func(ctx context.Context, key K) error

	// running has the time at which the reconciliation of each key began.
	running sync.Map
	// hasWorkers says that Run was called.
	hasWorkers atomic.Bool
}

// New makes a loop. The name labels its metrics and logs. Reconcile never runs twice at a time for one key; an error
// that it returns is logged, and the key is retried unless the error is Terminal.
func New[K comparable](name string, reconcile func(ctx context.Context, key K) error) *Loop[K] {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[K](firstRetry, lastRetry)
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[K]{Name: name})
	return &Loop[K]{TypedRateLimitingInterface: queue, name: name, reconcile: reconcile}
}

// Idle reports whether the loop runs, and has reconciled all keys but those that are to be retried later.
func (l *Loop[K]) Idle() bool {
	isIdle := l.hasWorkers.Load() && l.Len() == 0
	l.running.Range(func(any, any) bool { isIdle = false; return false })
	return isIdle
}

// CheckHealth returns an error if the loop is stuck: one reconciliation takes so long that it will never end.
func (l *Loop[K]) CheckHealth() error {
	for key, began := range l.running.Range {
		if took := time.Since(began.(time.Time)); took > stuckAfter {
			return fmt.Errorf("loop %s is stuck: it has worked on %v for %s", l.name, key, took.Round(time.Second))
		}
	}
	return nil
}

// Run reconciles with that many workers until ctx ends, and returns when the last worker has finished its key. Keys
// that are being reconciled then have a grace period, so that what takes several writes is not left half done.
func (l *Loop[K]) Run(ctx context.Context, workers int) {
	working, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()
	work := func() {
		for key, isShutDown := l.Get(); !isShutDown; key, isShutDown = l.Get() {
			if ctx.Err() == nil { // else the key is only taken from the queue
				l.running.Store(key, time.Now())
				err := l.reconcile(working, key)
				l.running.Delete(key)
				_, isTerminal := errors.AsType[*terminalError](err)
				switch logger := klog.FromContext(ctx); {
				case err == nil:
					l.Forget(key)
				case isTerminal:
					logger.Error(err, "Failed to reconcile; waiting for a change", "key", key)
					l.Forget(key)
				case LostRace(err):
					l.AddRateLimited(key)
					logger.V(2).Info("Another writer was faster; retrying", "key", key, "err", err)
				default:
					l.AddRateLimited(key)
					logger.Error(err, "Failed to reconcile; retrying", "key", key, "failures", l.NumRequeues(key))
				}
			}
			l.Done(key)
		}
	}
	var running sync.WaitGroup
	l.hasWorkers.Store(true)
	for range workers {
		running.Go(work)
	}
	<-ctx.Done()
	l.ShutDown()
	timer := time.AfterFunc(shutdownGrace, abort)
	defer timer.Stop()
	running.Wait()
}

// LostRace reports whether a write failed because someone else was faster. The cache will show it soon; it is nothing
// to alarm anyone about.
func LostRace(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err)
}

// Result names the API server's answer for metrics: ok, or its reason.
func Result(err error) string {
	if err == nil {
		return "ok"
	}
	if reason := apierrors.ReasonForError(err); reason != "" {
		return string(reason)
	}
	return "error"
}

// Terminal marks an error that a retry cannot fix. The key waits until it is added again.
func Terminal(err error) error {
	if err == nil {
		return nil
	}
	return &terminalError{err}
}

type terminalError struct{ error }

func (t *terminalError) Unwrap() error { return t.error }
