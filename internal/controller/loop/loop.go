package loop

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// A failed key is retried after 50 ms, 100 ms, 200 ms, and so on up to 20 s, since people who test something wait for
// it. Keys share no bucket, as in client-go's default limiter: it would hold back for hours a fleet that fails at once.
const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 20 * time.Second
)

// What the API server refuses, it will refuse again until someone changes a policy, a right or the API server itself. So
// the time between retries of such a key doubles up to lastRefusedRetry, and above lastRetry the retries of a fleet are
// spread by refusedRetryJitter: a fleet that is refused for days must neither load the API server nor fill the log.
const (
	lastRefusedRetry   = 5 * time.Minute
	refusedRetryJitter = 0.5
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

	// limiter counts the failures of each key.
	limiter workqueue.TypedRateLimiter[K]
	// running has the time at which the reconciliation of each key began.
	running sync.Map
	// hasWorkers says that Run was called.
	hasWorkers atomic.Bool

	mu sync.Mutex
	// refused has the keys that the API server has refused, and that wait for more than lastRetry.
	refused sets.Set[K]
	// wokenAt is when all of them were last queued because the API server accepted one.
	wokenAt time.Time
}

// New makes a loop. The name labels its metrics and logs. Reconcile never runs twice at a time for one key; an error
// that it returns is logged, and the key is retried unless the error is Terminal.
func New[K comparable](name string, reconcile func(ctx context.Context, key K) error) *Loop[K] {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[K](firstRetry, lastRefusedRetry)
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[K]{Name: name})
	return &Loop[K]{TypedRateLimitingInterface: queue, name: name, reconcile: reconcile, limiter: limiter, refused: sets.Set[K]{}}
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
				err := l.reconcileKey(working, key)
				l.running.Delete(key)
				l.finishKey(klog.FromContext(ctx), key, err)
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

// reconcileKey reconciles a key. A panic is an error of the key alone: whoever may edit one object must not be able to stop the
// work for all others.
func (l *Loop[K]) reconcileKey(ctx context.Context, key K) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	return l.reconcile(ctx, key)
}

// finishKey retries a key later if its reconciliation failed.
func (l *Loop[K]) finishKey(logger klog.Logger, key K, err error) {
	_, isTerminal := errors.AsType[*terminalError](err)
	switch {
	case err == nil:
		l.wakeRefused(key)
		l.Forget(key)
	case isTerminal:
		logger.Error(err, "Failed to reconcile; waiting for a change", "key", key)
		l.Forget(key)
	case LostRace(err):
		l.retryLater(key, err)
		logger.V(2).Info("Another writer was faster; retrying", "key", key, "err", err)
	default:
		l.retryLater(key, err)
		logger.Error(err, "Failed to reconcile; retrying", "key", key, "failures", l.NumRequeues(key))
	}
}

// retryLater queues a key that has failed after a time that doubles with each failure.
func (l *Loop[K]) retryLater(key K, err error) {
	delay := l.limiter.When(key)
	switch {
	case delay <= lastRetry:
	case IsRefusal(err):
		l.mu.Lock()
		if !l.refused.Has(key) { // the earlier failures may have been others
			delay = min(delay, 2*lastRetry)
		}
		l.refused.Insert(key)
		l.mu.Unlock()
		delay = wait.Jitter(delay, refusedRetryJitter)
	default:
		delay = lastRetry
	}
	l.AddAfter(key, delay)
}

// Forget forgets the failures of a key. Call it when something has changed that may have made the key fail, so that it
// is not retried as rarely as before if it fails for another reason.
func (l *Loop[K]) Forget(key K) {
	l.mu.Lock()
	l.refused.Delete(key)
	l.mu.Unlock()
	l.TypedRateLimitingInterface.Forget(key)
}

// wakeRefused queues all refused keys if the key that has just succeeded was one of them: what was refused of a fleet
// may be accepted now. If keys succeed in turn, such as while refused Nodes are deleted one by one, the others are
// queued no more often than other failed keys.
func (l *Loop[K]) wakeRefused(succeeded K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.refused.Has(succeeded) || time.Since(l.wokenAt) < lastRetry {
		return
	}
	l.wokenAt = time.Now()
	for key := range l.refused {
		if key != succeeded {
			l.Add(key)
		}
	}
	l.refused.Clear()
}

// IsRefusal reports whether the API server refused all that failed, so that a retry will fail too.
func IsRefusal(err error) bool {
	if joined, ok := errors.AsType[joinedError](err); ok {
		return !slices.ContainsFunc(joined.Unwrap(), func(err error) bool { return !IsRefusal(err) })
	}
	_, isMarked := errors.AsType[*refusedError](err)
	return isMarked || apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsMethodNotSupported(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// joinedError is what errors.Join returns.
type joinedError interface {
	error
	Unwrap() []error
}

// Refused marks an error as a refusal that the API server does not report as one.
func Refused(err error) error { return &refusedError{err} }

type refusedError struct{ error }

func (r *refusedError) Unwrap() error { return r.error }

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
