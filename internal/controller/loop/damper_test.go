package loop

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestDamper: the first of many is told at once, the last one arrives, and keys do not wait for each other.
func TestDamper(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, calls := time.Now(), map[string][]time.Duration{}
		var mu sync.Mutex
		d := NewDamper(time.Second, func(key string) {
			mu.Lock()
			defer mu.Unlock()
			calls[key] = append(calls[key], time.Since(began))
		})
		for range 2500 {
			d.Add("a")
			time.Sleep(time.Millisecond)
			synctest.Wait()
		}
		d.Add("b")
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, map[string][]time.Duration{"a": {0, time.Second, 2 * time.Second, 3 * time.Second}, "b": {2500 * time.Millisecond}}, calls)
		require.Empty(t, d.resting)
		d.Add("a")
		synctest.Wait()
		require.Len(t, calls["a"], 5, "at once again")
		time.Sleep(time.Minute)
	})
}
