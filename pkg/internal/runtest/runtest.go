// Package runtest runs what is tested beside the test.
package runtest

import (
	"context"
	"testing"
)

// UntilEnd runs something in the background until the test ends, which waits for it.
func UntilEnd(ctx context.Context, t testing.TB, run func(ctx context.Context)) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}
