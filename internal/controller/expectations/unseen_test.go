package expectations

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestUnseen: the answer stays until the cache has its version, or a newer one.
func TestUnseen(t *testing.T) {
	t.Parallel()
	var u Unseen[string, int]
	answer := u.Answer("a")
	require.Equal(t, Current, answer.Compare("9"), "nothing was written")
	u.Answered("a", 1, "10", false)
	u.Answered("b", 2, "11", false)
	answer = u.Answer("a")
	require.Equal(t, 1, answer.Content)
	require.Equal(t, Behind, answer.Compare("9"))
	require.Equal(t, Current, answer.Compare("10"))
	require.Equal(t, Current, answer.Compare("11"))
	u.Forget("a")
	require.Zero(t, u.Answer("a"))
	require.Equal(t, 2, u.Answer("b").Content)
}

// TestObserved: only the event of the own last write says nothing new, and only if nothing waits for it.
func TestObserved(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		prepare func(u *Unseen[string, int])
		version string
		isOwn   bool
		isKept  bool
	}{
		"nothing was written": {func(*Unseen[string, int]) {}, "10", false, false},
		"own":                 {func(u *Unseen[string, int]) { u.Answered("a", 1, "10", false) }, "10", true, false},
		"other key":           {func(u *Unseen[string, int]) { u.Answered("b", 1, "10", false) }, "10", false, false},
		"before it":           {func(u *Unseen[string, int]) { u.Answered("a", 1, "10", false) }, "9", false, true},
		"after it":            {func(u *Unseen[string, int]) { u.Answered("a", 1, "10", false) }, "11", false, false},
		"was read":            {func(u *Unseen[string, int]) { u.Answered("a", 1, "10", true) }, "10", false, false},
		"written after it was read": {func(u *Unseen[string, int]) {
			u.Answered("a", 1, "9", true)
			u.Answered("a", 1, "10", false)
		}, "10", false, false},
		"a reconciliation waits": {func(u *Unseen[string, int]) {
			u.Answered("a", 1, "10", false)
			u.Postpone("a", nil)
		}, "10", false, false},
		"forgotten": {func(u *Unseen[string, int]) {
			u.Answered("a", 1, "10", false)
			u.Forget("a")
		}, "10", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var u Unseen[string, int]
			test.prepare(&u)
			require.Equal(t, test.isOwn, u.Observed("a", test.version))
			answer := u.Answer("a")
			require.Equal(t, test.isKept, answer.Version != "")
		})
	}
}

// TestPostponeTooLate: a reconciliation that would wait for an event that has come is requeued at once.
func TestPostponeTooLate(t *testing.T) {
	t.Parallel()
	var u Unseen[string, int]
	u.Answered("a", 1, "10", false)
	require.True(t, u.Observed("a", "10"))
	requeued := ""
	u.Postpone("a", func(key string) { requeued = key })
	require.Equal(t, "a", requeued)
}

// TestUnseenForTooLong: a version that does not come within the limit may never come. The key is requeued, and the API
// server's word counts.
func TestUnseenForTooLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var u Unseen[string, int]
		requeued := make(chan string, 10)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go u.Run(ctx, func(key string) { requeued <- key })
		synctest.Wait()
		u.Answered("lost", 1, "10", false)
		u.Answered("seen", 1, "10", false)
		time.Sleep(Limit - time.Nanosecond)
		require.True(t, u.Observed("seen", "10"))
		answer := u.Answer("lost")
		require.Equal(t, Behind, answer.Compare("9"))
		require.Empty(t, requeued)
		time.Sleep(time.Nanosecond)
		require.Equal(t, Doubtful, answer.Compare("9"))
		synctest.Wait()
		require.Equal(t, "lost", <-requeued)
		require.Empty(t, requeued)
		u.Answered("lost", 1, "8", true)
		answer = u.Answer("lost")
		require.Equal(t, Current, answer.Compare("9"), "the API server has gone back")
	})
}
