package kubelet

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestDampCalls: the first of many is told at once, the last one arrives, and keys do not wait for each other.
func TestDampCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, calls := time.Now(), map[string][]time.Duration{}
		var mu sync.Mutex
		add := dampCalls(time.Second, func(key string) {
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

// TestNodeThatFlaps: what a plugin says first is announced at once, what it says then once in a while, and what it says last
// in the end.
func TestNodeThatFlaps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k, state, announced := &Kubelets{}, 0, []int{}
		k.OnChange(func(string) { announced = append(announced, state) }, nil)
		for range 10_000 {
			state++
			k.nodeChanged("n")
			time.Sleep(time.Millisecond)
		}
		time.Sleep(nodeEventInterval)
		synctest.Wait()
		require.Equal(t, 1, announced[0])
		require.Equal(t, 10_000, announced[len(announced)-1])
		require.LessOrEqual(t, len(announced), 12)
	})
}
