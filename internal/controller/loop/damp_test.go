package loop

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestDamp: the first of many is told at once, the last one arrives, and keys do not wait for each other.
func TestDamp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, calls := time.Now(), map[string][]time.Duration{}
		var mu sync.Mutex
		add := Damp(time.Second, func(key string) {
			mu.Lock()
			defer mu.Unlock()
			calls[key] = append(calls[key], time.Since(began))
		})
		for range 2500 {
			add("a")
			time.Sleep(time.Millisecond)
			synctest.Wait()
		}
		add("b")
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, map[string][]time.Duration{"a": {0, time.Second, 2 * time.Second, 3 * time.Second}, "b": {2500 * time.Millisecond}}, calls)
		add("a")
		synctest.Wait()
		require.Len(t, calls["a"], 5, "at once again")
		time.Sleep(time.Minute)
	})
}
