package loop

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kwok-dra/kwok-dra/internal/testing/runtest"
)

var (
	errBroken  = errors.New("broken")
	errInvalid = apierrors.NewInvalid(schema.GroupKind{}, "a", nil)
)

// started runs a loop in the bubble until the test ends or stop is called,
// which waits for Run to return.
func started(t *testing.T, workers int, reconcile func(ctx context.Context, key string) error) (l *Loop[string], stop func()) {
	t.Helper()
	l = New(t.Name(), reconcile)
	ctx, cancel := context.WithCancel(runtest.QuietContext(t))
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.Run(ctx, workers)
	}()
	stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(stop)
	return l, stop
}

// failing returns a reconcile function that fails with err the first n times,
// and the times at which it was called since it was made.
func failing(n int, err error) (func(context.Context, string) error, func() []time.Duration) {
	var mu sync.Mutex
	var calls []time.Duration
	start := time.Now()
	return func(context.Context, string) error {
			mu.Lock()
			defer mu.Unlock()
			calls = append(calls, time.Since(start))
			if len(calls) <= n {
				return err
			}
			return nil
		}, func() []time.Duration {
			mu.Lock()
			defer mu.Unlock()
			return calls
		}
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reconcile, calls := failing(13, errBroken)
		l, _ := started(t, 1, reconcile)
		l.Add("a")
		time.Sleep(time.Hour)
		var want []time.Duration
		at := time.Duration(0)
		for _, wait := range []time.Duration{
			0, 50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond,
			1600 * time.Millisecond, 3200 * time.Millisecond, 6400 * time.Millisecond, 12800 * time.Millisecond, 20 * time.Second, 20 * time.Second,
			20 * time.Second, 20 * time.Second,
		} {
			at += wait
			want = append(want, at)
		}
		require.Equal(t, want, calls())
		require.Zero(t, l.NumRequeues("a"), "success resets the backoff")
	})
}

// TestPanic: a panic on one key does not stop the others.
func TestPanic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var reconciled atomic.Int32
		l, _ := started(t, 1, func(_ context.Context, key string) error {
			if key == "bad" {
				panic(errBroken)
			}
			reconciled.Add(1)
			return nil
		})
		l.Add("bad")
		l.Add("good")
		synctest.Wait()
		require.EqualValues(t, 1, reconciled.Load())
		require.Equal(t, 1, l.NumRequeues("bad"))
	})
}

// TestRefusalAfterOtherFailures: an outage before does not make the first refusal last.
func TestRefusalAfterOtherFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const outage = 30
		var calls atomic.Int32
		l, _ := started(t, 1, func(context.Context, string) error {
			switch count := calls.Add(1); {
			case count <= outage:
				return errBroken
			case count == outage+1:
				return errInvalid
			}
			return nil
		})
		l.Add("a")
		for calls.Load() <= outage {
			time.Sleep(time.Second)
		}
		time.Sleep(3 * lastRetry)
		require.EqualValues(t, outage+2, calls.Load())
		require.Zero(t, l.NumRequeues("a"))
	})
}

// TestRefusedBackoff: a refusal is retried as soon as other failures at first, and ever more rarely.
func TestRefusedBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reconcile, calls := failing(1000, errInvalid)
		l, _ := started(t, 1, reconcile)
		l.Add("a")
		time.Sleep(time.Hour)
		at := calls()
		require.Equal(t, []time.Duration{0, 50 * time.Millisecond, 150 * time.Millisecond, 350 * time.Millisecond}, at[:4])
		for i := 10; i < len(at); i++ {
			shortest := min(firstRetry<<(i-1), lastRefusedRetry)
			require.GreaterOrEqual(t, at[i]-at[i-1], shortest)
			require.LessOrEqual(t, at[i]-at[i-1], shortest*3/2)
		}
		require.Greater(t, len(at), 15)
		require.Less(t, len(at), 25)

		l.Forget("a")
		l.Add("a")
		before := len(calls())
		time.Sleep(time.Second)
		require.Len(t, calls(), before+5, "what has changed is tried as often as what is new")
	})
}

func TestIsRefusal(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"no answer":           {errBroken, false},
		"internal error":      {apierrors.NewInternalError(errBroken), false},
		"lost race":           {apierrors.NewConflict(schema.GroupResource{}, "a", errBroken), false},
		"invalid":             {fmt.Errorf("create: %w", errInvalid), true},
		"forbidden":           {apierrors.NewForbidden(schema.GroupResource{}, "a", errBroken), true},
		"marked":              {fmt.Errorf("create: %w", Refused(errBroken)), true},
		"all refused":         {fmt.Errorf("node: %w", errors.Join(errors.Join(nil, errInvalid), Refused(errBroken))), true},
		"one may yet succeed": {errors.Join(errors.Join(nil, errInvalid), apierrors.NewInternalError(errBroken)), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, IsRefusal(test.err))
		})
	}
	require.EqualError(t, Refused(errBroken), "broken")
}

// TestOneAcceptedWakesTheRefused: once the API server accepts one key, those that it refused as well are tried at once.
func TestOneAcceptedWakesTheRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var isAccepted atomic.Bool
		var mu sync.Mutex
		accepted := map[string]bool{}
		var first, last time.Time
		l, _ := started(t, 4, func(_ context.Context, key string) error {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case !isAccepted.Load():
				return errInvalid
			case len(accepted) == 0:
				first = time.Now()
			}
			if !accepted[key] {
				accepted[key], last = true, time.Now()
			}
			return nil
		})
		for i := range 50 {
			l.Add(fmt.Sprint(i))
		}
		time.Sleep(time.Hour)
		isAccepted.Store(true)
		time.Sleep(lastRefusedRetry * 3 / 2)
		synctest.Wait()
		require.Len(t, accepted, 50)
		require.Equal(t, first, last)
	})
}

func TestRetries(t *testing.T) {
	t.Parallel()
	group := schema.GroupResource{Resource: "resourceslices"}
	for name, test := range map[string]struct {
		err      error
		calls    int
		failures int
	}{
		"success":             {nil, 1, 0},
		"plain error":         {errBroken, 5, 5},
		"conflict":            {apierrors.NewConflict(group, "a", errBroken), 5, 5},
		"not found":           {apierrors.NewNotFound(group, "a"), 5, 5},
		"already exists":      {apierrors.NewAlreadyExists(group, "a"), 5, 5},
		"invalid":             {errInvalid, 5, 5},
		"terminal":            {Terminal(errBroken), 1, 0},
		"wrapped terminal":    {fmt.Errorf("node: %w", Terminal(errBroken)), 1, 0},
		"terminal conflict":   {Terminal(apierrors.NewConflict(group, "a", errBroken)), 1, 0},
		"terminal nil":        {Terminal(nil), 1, 0},
		"joined with a retry": {errors.Join(errBroken, Terminal(errBroken)), 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				reconcile, calls := failing(1000, test.err)
				l, _ := started(t, 1, reconcile)
				l.Add("a")
				time.Sleep(time.Second) // retries at 50, 150, 350 and 750 ms
				require.Len(t, calls(), test.calls)
				require.Equal(t, test.failures, l.NumRequeues("a"))
			})
		})
	}
}

// TestTerminalIsTriedAgainWhenAdded: and it starts with a fresh backoff.
func TestTerminalIsTriedAgainWhenAdded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reconcile, calls := failing(1000, Terminal(errBroken))
		l, _ := started(t, 1, reconcile)
		for range 3 {
			l.Add("a")
			time.Sleep(time.Hour)
		}
		require.Equal(t, []time.Duration{0, time.Hour, 2 * time.Hour}, calls())
	})
}

func TestTerminalKeepsItsCause(t *testing.T) {
	t.Parallel()
	require.ErrorIs(t, Terminal(errBroken), errBroken)
	require.EqualError(t, Terminal(errBroken), "broken")
	require.NoError(t, Terminal(nil))
	require.False(t, LostRace(errBroken))
	require.True(t, LostRace(fmt.Errorf("update: %w", apierrors.NewConflict(schema.GroupResource{}, "a", nil))))
}

// TestNoSharedBackoff: a fleet that fails at once is retried at once.
func TestNoSharedBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		l, _ := started(t, 4, func(context.Context, string) error {
			calls.Add(1)
			return errBroken
		})
		for i := range 1000 {
			l.Add(fmt.Sprint(i))
		}
		time.Sleep(60 * time.Millisecond)
		require.EqualValues(t, 2000, calls.Load())
	})
}

func TestAddAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reconcile, calls := failing(0, nil)
		l, _ := started(t, 1, reconcile)
		l.AddAfter("a", 30*time.Second)
		l.AddAfter("a", time.Minute)
		time.Sleep(time.Hour)
		require.Equal(t, []time.Duration{30 * time.Second}, calls(), "the earlier time wins, and once is enough")
	})
}

// TestOneKeyAtATime: a key added while it is worked on is worked on once more.
func TestOneKeyAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var working, calls atomic.Int32
		l, _ := started(t, 8, func(context.Context, string) error {
			if working.Add(1) > 1 {
				t.Error("two workers have the key")
			}
			time.Sleep(time.Second)
			working.Add(-1)
			calls.Add(1)
			return nil
		})
		l.Add("a")
		time.Sleep(time.Millisecond)
		for range 5 {
			l.Add("a")
		}
		time.Sleep(time.Hour)
		require.EqualValues(t, 2, calls.Load())
	})
}

func TestWorkersWorkAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		l, _ := started(t, 4, func(context.Context, string) error {
			calls.Add(1)
			time.Sleep(time.Minute)
			return nil
		})
		for i := range 10 {
			l.Add(fmt.Sprint(i))
		}
		synctest.Wait()
		require.EqualValues(t, 4, calls.Load())
		time.Sleep(time.Hour)
		require.EqualValues(t, 10, calls.Load())
	})
}

// TestShutdown: keys under way have a grace period, queued ones are passed
// over, and Run returns when the last worker has finished.
func TestShutdown(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		needs, took time.Duration
		err         error
	}{
		"within grace": {3 * time.Second, 3 * time.Second, nil},
		"cut off":      {time.Hour, shutdownGrace, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var calls atomic.Int32
				var got error
				l, stop := started(t, 1, func(ctx context.Context, _ string) error {
					calls.Add(1)
					select {
					case <-time.After(test.needs):
					case <-ctx.Done():
						got = ctx.Err()
					}
					return got
				})
				l.Add("a")
				synctest.Wait()
				l.Add("b")
				start := time.Now()
				stop()
				require.Equal(t, test.took, time.Since(start))
				require.ErrorIs(t, got, test.err)
				require.EqualValues(t, 1, calls.Load())
			})
		})
	}
}

func TestRunAfterTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New("end", func(context.Context, string) error {
			t.Error("reconciled")
			return nil
		})
		l.Add("a")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		l.Run(ctx, 2)
	})
}

// TestCheckHealth complains of a key that is never finished, and of no other: not of
// one that fails again and again, or that takes long.
func TestCheckHealth(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		l, _ := started(t, 2, func(_ context.Context, key string) error {
			switch key {
			case "slow":
				time.Sleep(stuckAfter - time.Second)
			case "stuck":
				<-release
			case "failing":
				return errBroken
			}
			return nil
		})
		require.NoError(t, l.CheckHealth())
		l.Add("slow")
		l.Add("failing")
		time.Sleep(2 * stuckAfter)
		require.NoError(t, l.CheckHealth())

		l.Add("stuck")
		time.Sleep(stuckAfter)
		require.NoError(t, l.CheckHealth())
		time.Sleep(time.Minute)
		require.EqualError(t, l.CheckHealth(), "loop TestCheckHealth is stuck: it has worked on stuck for 11m0s")
		close(release)
		synctest.Wait()
		require.NoError(t, l.CheckHealth())
	})
}

// TestIdle: a loop is idle when it runs and has been through all keys, also where one is to
// be tried again later.
func TestIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		held := make(chan error)
		l := New(t.Name(), func(context.Context, string) error { return <-held })
		require.False(t, l.Idle())
		ctx, stop := context.WithCancel(runtest.QuietContext(t))
		defer stop()
		go l.Run(ctx, 1)
		synctest.Wait()
		require.True(t, l.Idle())
		l.Add("a")
		l.Add("b")
		synctest.Wait()
		require.False(t, l.Idle())
		held <- errBroken
		synctest.Wait()
		require.False(t, l.Idle())
		held <- nil
		synctest.Wait()
		require.True(t, l.Idle())
		time.Sleep(time.Second)
		held <- nil
	})
}
