// Package runtest runs code under test: with a fake clock, quietly, and beside the test.
package runtest

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

// InBubble runs a test with a fake clock, in parallel with other tests.
func InBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

// QuietContext returns the context of a test with a logger that writes to the test's
// output, without verbose lines.
func QuietContext(t testing.TB) context.Context {
	t.Helper()
	return klog.NewContext(t.Context(), ktesting.NewLogger(t, ktesting.NewConfig(ktesting.Verbosity(0))))
}

// UntilEnd runs functions in the background, beside each other, until the test ends or stop is
// called. Both wait for them.
func UntilEnd(ctx context.Context, t testing.TB, runs ...func(ctx context.Context)) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	for _, run := range runs {
		running.Go(func() { run(ctx) })
	}
	stop = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(stop)
	return stop
}

// InOrder is UntilEnd for a bubble: each begins when those before it have nothing left to do. A fake server replays nothing
// to a watch, so what is written between the list of a cache and its watch would be lost.
func InOrder(ctx context.Context, t testing.TB, runs ...func(ctx context.Context)) (stop func()) {
	t.Helper()
	stop = func() {}
	for _, run := range runs {
		stopEarlier, stopThis := stop, UntilEnd(ctx, t, run)
		stop = func() {
			stopThis()
			stopEarlier()
		}
		synctest.Wait()
	}
	return stop
}
