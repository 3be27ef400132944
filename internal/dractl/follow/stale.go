package follow

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kwok-dra/kwok-dra/internal/extensions/util/groupclient"
)

const (
	// staleAfter is how long updates fail before the user is told. A watch that ends by itself begins again at once.
	staleAfter = 10 * time.Second
	// firstViewTimeout is how long they may fail as long as there is nothing to show.
	firstViewTimeout = 30 * time.Second
)

// failure is the last error of a resource, and since when its requests fail.
type failure struct {
	resource string
	err      error
	since    time.Time
}

// recordedRequests records how each request of a resource ends. An informer tells nobody of a watch that is refused: it tries again
// for ever, and keeps what it has.
type recordedRequests[L runtime.Object] struct {
	groupclient.Resource[L]

	record func(err error)
}

func recordRequests[L runtime.Object](l *Live, resource string, of groupclient.Resource[L]) recordedRequests[L] {
	return recordedRequests[L]{of, func(err error) { l.recordRequest(resource, err) }}
}

// List implements groupclient.Resource.
func (n recordedRequests[L]) List(ctx context.Context, options metav1.ListOptions) (L, error) {
	list, err := n.Resource.List(ctx, options)
	n.record(err)
	return list, err
}

// Watch implements groupclient.Resource.
func (n recordedRequests[L]) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	begun, err := n.Resource.Watch(ctx, options)
	n.record(err)
	return begun, err
}

func (l *Live) recordRequest(resource string, err error) {
	l.failuresLock.Lock()
	defer l.failuresLock.Unlock()
	if err == nil {
		delete(l.failures, resource)
		return
	}
	failed, isKnown := l.failures[resource]
	if !isKnown {
		failed = failure{resource: resource, since: time.Now()}
	}
	failed.err = err
	l.failures[resource] = failed
}

// longestFailure returns the failure that has lasted the longest, if it has lasted that long. What the answer does without
// does not count.
func (l *Live) longestFailure(lasting time.Duration) (longest failure, found bool) {
	l.failuresLock.Lock()
	defer l.failuresLock.Unlock()
	for _, resource := range slices.Sorted(maps.Keys(l.failures)) {
		failed := l.failures[resource]
		isLonger := !found || failed.since.Before(longest.since)
		if isLonger && time.Since(failed.since) >= lasting && l.Unseen(resource) == "" {
			longest, found = failed, true
		}
	}
	return longest, found
}

// Stale says since when there are no updates, and why, or is empty.
func (l *Live) Stale() string {
	failed, isStale := l.longestFailure(staleAfter)
	if !isStale {
		return ""
	}
	cause := failed.err
	if request, isRequest := errors.AsType[*url.Error](cause); isRequest {
		cause = request.Err // the address of a watch is longer than a terminal is wide
	}
	return fmt.Sprintf("no updates for %s, so what is shown is old: %v", duration.HumanDuration(time.Since(failed.since)), cause)
}

// reportStale tells the user once that there are no updates, and once that there are some again.
func (l *Live) reportStale() {
	stale := l.Stale()
	if l.ErrOut == nil || l.hasReportedStale == (stale != "") {
		return
	}
	l.hasReportedStale = stale != ""
	if !l.hasReportedStale {
		stale = "there are updates again"
	}
	_, _ = fmt.Fprintln(l.ErrOut, stale)
}
