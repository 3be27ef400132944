package expectations

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestExpectations runs scripts for slice a (or b, c) of one key. A step reads
// "<what> [slice] [version]"; "saw 5 !" and "end 5 !" must ask for a
// reconciliation, without the mark they must not. "blocked" and "free" ask
// whether the key waits.
func TestExpectations(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"nothing written":               "free; saw a 5 !; free",
		"answer, event":                 "begin a; blocked; end a 5; blocked; saw a 5 !; free; saw a 5 !",
		"answer, event, nobody waits":   "begin a; end a 5; saw a 5; free",
		"event, answer":                 "begin a; saw a 5; end a 5; free",
		"event, blocked, answer":        "begin a; saw a 5; blocked; end a 5; free",
		"failed":                        "begin a; end a -; free",
		"foreign event, failed":         "begin a; saw a 4; end a - !; free",
		"foreign before, answer, event": "begin a; saw a 4; end a 5; blocked; saw a 5 !; free",
		"foreign before, nobody waits":  "begin a; saw a 4; end a 5; saw a 5; free",
		"answer, foreign before":        "begin a; end a 5; saw a 4; blocked; saw a 5 !; free",
		"foreign after, then answer":    "begin a; saw a 6; end a 5 !; free",
		"event, foreign after, answer":  "begin a; saw a 5; saw a 6; end a 5 !; free",
		"answer, foreign after at once": "begin a; end a 5; saw a 6 !; free",
		"answer, event, foreign after":  "begin a; end a 5; saw a 5; saw a 6 !; free",
		"many digits":                   "begin a; end a 10; saw a 9; blocked; saw a 10 !; free",
		"two slices":                    "begin a; end a 5; begin b; end b 6; saw a 5; blocked; saw b 6 !; free",
		"two slices, other order":       "begin a; end a 5; begin b; end b 6; blocked; saw b 6; blocked; saw a 5 !; free",
		"two slices, nobody waits":      "begin a; end a 5; begin b; end b 6; saw a 5; saw b 6; free",
		"one in the cache, one not":     "begin a; saw a 5; end a 5; begin b; end b 6; blocked; saw b 6 !; free",
		"one fails":                     "begin a; end a 5; begin b; end b -; blocked; saw a 5 !; free",
		"another slice altogether":      "begin a; end a 5; saw c 9 !; blocked; saw a 5 !; free",
		"deleted before the event":      "begin a; end a 5; gone a; free",
		"deleted before the answer":     "begin a; gone a; end a 5; free",
		"deleted, nothing written":      "gone a; free",
		"deleted one of two":            "begin a; end a 5; begin b; end b 6; gone a; blocked; saw b 6 !; free",
		"written twice":                 "begin a; end a 5; begin a; end a 7; saw a 5; blocked; saw a 7 !; free",
		"written twice, events late":    "begin a; end a 5; saw a 5; begin a; end a 7; saw a 7; free",
		"no numbers":                    "begin a; end a x; saw a x; free",
		"no numbers, foreign":           "begin a; end a x; saw a w !; free",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := &Expectations[string, string]{}
			for step := range strings.SplitSeq(script, "; ") {
				runStep(t, e, step)
			}
		})
	}
}

func runStep(t *testing.T, e *Expectations[string, string], step string) {
	t.Helper()
	words := append(strings.Fields(step), "", "")
	version := strings.TrimPrefix(words[2], "-")
	want := strings.HasSuffix(step, "!")
	switch words[0] {
	case "begin":
		e.Expect("n", words[1])
	case "end":
		require.Equal(t, want, e.Answered("n", words[1], version), step)
	case "saw":
		require.Equal(t, want, requeued(e.Observed("n", words[1], version)), step)
	case "gone":
		e.Deleted("n", words[1])
	case "blocked", "free":
		require.Equal(t, words[0] == "blocked", e.Wait("n") > 0, "%s: %+v", step, e.pending["n"])
	default:
		t.Fatal("unknown step", step)
	}
}

// TestEveryOrder: one write and up to three events of it and of
// foreign edits before and after, in every order the cache can have them. In
// the end the key is free, and it was asked to be reconciled if and only if
// the newest event in the cache is foreign, or a reconciliation was put off.
func TestEveryOrder(t *testing.T) {
	t.Parallel()
	for _, versions := range [][]string{{"5"}, {"4", "5"}, {"5", "6"}, {"6"}, {"4", "6"}, {"4", "5", "6"}, {"3", "4", "5"}} {
		for answer := range len(versions) + 1 {
			for waiter := range len(versions) + 2 { // the last is never
				requireFreed(t, versions, answer, waiter)
			}
		}
	}
}

// requireFreed has the answer come before one event, and a reconciliation before
// another.
func requireFreed(t *testing.T, versions []string, answer, waiter int) {
	t.Helper()
	e := &Expectations[string, string]{}
	asked, waited, free := false, false, false
	e.Expect("n", "a")
	for i := range len(versions) + 1 {
		if i == answer {
			asked = e.Answered("n", "a", "5") || asked
		}
		if i == waiter {
			waited = e.Wait("n") > 0
			free = !waited
		}
		if i < len(versions) {
			asked = requeued(e.Observed("n", "a", versions[i])) || asked
		}
	}
	about := fmt.Sprintf("events %v, answer before %d, reconciliation before %d (put off: %v)", versions, answer, waiter, waited)
	require.Empty(t, e.pending, about)
	foreignLast := versions[len(versions)-1] != "5"
	if foreignLast && !free {
		require.True(t, asked, about)
	}
	if !foreignLast && !waited {
		require.False(t, asked, about)
	}
}

func TestWaitEndsByItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &Expectations[string, string]{}
		e.Expect("n", "a")
		time.Sleep(10 * time.Second)
		e.Expect("n", "b")
		require.False(t, e.Answered("n", "a", "5"))
		time.Sleep(Limit - 10*time.Second - 1)
		require.Equal(t, time.Duration(1), e.Wait("n"), "what is left of the 30 s, and not 30 s more")
		time.Sleep(time.Nanosecond)
		require.Zero(t, e.Wait("n"), "30 s after the first write")
		require.False(t, e.Answered("n", "b", "6"), "the answer finds nothing written")
		require.True(t, requeued(e.Observed("n", "a", "5")))
		require.Empty(t, e.pending)
	})
}

// TestRestoredBackup: the cache has an older version than was answered, or still has what was deleted, for good: etcd was
// restored from a backup. The key is requeued, and no longer waits.
func TestRestoredBackup(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(e *Expectations[string, string]){
		"written": func(e *Expectations[string, string]) { e.Answered("n", "a", "999") },
		"deleted": func(*Expectations[string, string]) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := &Expectations[string, string]{}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var requeues atomic.Int32
				go e.Run(ctx, func(string) { requeues.Add(1) })
				e.Expect("n", "a")
				answer(e)
				require.False(t, requeued(e.Observed("n", "a", "5")))
				time.Sleep(Limit)
				synctest.Wait()
				require.EqualValues(t, 1, requeues.Load())
				require.Zero(t, e.Wait("n"))
				require.True(t, requeued(e.Observed("n", "a", "6")))
				require.Empty(t, e.pending)
			})
		})
	}
}

func TestKeysAreApart(t *testing.T) {
	t.Parallel()
	e := &Expectations[string, string]{}
	e.Expect("n", "a")
	require.Zero(t, e.Wait("m"))
	require.True(t, requeued(e.Observed("m", "a", "5")))
	require.Positive(t, e.Wait("n"))
}

// requeued is whether the key must be reconciled.
func requeued(requeue, _ bool) bool { return requeue }

// TestLateWrites: a key is requeued once, where the cache does not see its writes in time.
func TestLateWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var e Expectations[string, string]
		requeued := make(chan string, 10)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go e.Run(ctx, func(key string) { requeued <- key })
		e.Expect("seen", "a")
		e.Expect("lost", "a")
		time.Sleep(Limit / 2)
		synctest.Wait()
		e.Expect("lost", "b")
		require.False(t, e.Deleted("seen", "a"))
		require.Empty(t, requeued)
		time.Sleep(Limit)
		synctest.Wait()
		require.Equal(t, "lost", <-requeued)
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Empty(t, requeued)
	})
}
