package page

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
)

func TestDevices(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, "a", "b")
		w.allocate("b", "c")
		response := w.get("/api/devices")
		revision := w.feed.currentRevision()
		kind := w.decode(w.get("/api/devices")).Kinds[0].ID
		require.Equal(t, `W/"`+revision+`"`, response.Header().Get("ETag"))
		require.JSONEq(t, `{
			"revision": "`+revision+`",
			"drivers": [{"name": "d", "pools": 2, "incompletePools": 0, "usage": {"used": 1, "total": 2},
				"states": {"free": 1, "blocked": 0, "allocated": 1, "prepared": 0, "failing": 0, "tainted": 0}}],
			"items": [
				{"id": "node/a", "node": "a", "pools": [{"driver": "d", "name": "a", "generation": 1, "slices": 1, "resourceSliceCount": 1, "usage": {"used": 0, "total": 1}, "kind": "`+kind+`", "devices": [
					{"name": "gpu-0", "state": "free"}
				]}]},
				{"id": "node/b", "node": "b", "pools": [{"driver": "d", "name": "b", "generation": 1, "slices": 1, "resourceSliceCount": 1, "usage": {"used": 1, "total": 1}, "kind": "`+kind+`", "devices": [
					{"name": "gpu-0", "state": "allocated", "claims": [{"namespace": "default", "name": "c", "prepared": false}]}
				]}]}
			],
			"kinds": [{"id": "`+kind+`", "devices": [{}]}]
		}`, response.Body.String())
	})
}

// TestNodeNotReady sends a node again that is no longer ready, also one without devices.
func TestNodeNotReady(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, "a", "b")
		w.retired["b"] = true
		before := w.feed.currentRevision()
		w.change(func() { w.notReady = map[string]bool{"a": true, "b": true} })
		time.Sleep(inventoryInterval)
		answer := w.get("/api/devices?since=" + before)
		text := answer.Body.String()
		require.Contains(t, text, `"node":"a","notReady":true,`)
		require.Contains(t, text, `"node":"b","notReady":true,`)
		require.Contains(t, text, `"blockedBy":"node a, which is not Ready"`)
		require.Equal(t, map[string]string{"node/a": "blocked", "node/b": ""}, w.decode(answer).states())
	})
}

func TestDevicesOfNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t)
		revision := w.feed.currentRevision()
		require.JSONEq(t, `{"revision": "`+revision+`", "drivers": [], "items": []}`, w.get("/api/devices").Body.String())
	})
}

func TestDevicesAreNotSentAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, "a")
		tag := w.get("/api/devices").Header().Get("ETag")
		again := w.get("/api/devices", "If-None-Match", tag)
		require.Equal(t, http.StatusNotModified, again.Code)
		require.Equal(t, tag, again.Header().Get("ETag"))
		require.Zero(t, again.Body.Len())
		w.allocate("a", "c")
		time.Sleep(inventoryInterval)
		require.Equal(t, map[string]string{"node/a": "allocated"}, w.decode(w.get("/api/devices", "If-None-Match", tag)).states())
	})
}

func TestChangesComeOneByOne(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		all := w.decode(w.get("/api/devices"))
		require.Empty(t, all.Since)
		time.AfterFunc(10*time.Second-pollInterval/2, func() { w.allocate("b", "x") })
		answer, took := w.since(all.Revision)
		require.Equal(t, 10*time.Second, took, "at once, after it was quiet")
		require.Equal(t, all.Revision, answer.Since)
		require.Equal(t, map[string]string{"node/b": "allocated"}, answer.states())

		w.allocate("b", "")
		w.allocate("a", "x")
		time.AfterFunc(inventoryInterval/4, func() { w.remove("c") })
		next, took := w.since(answer.Revision)
		require.Equal(t, inventoryInterval, took, "no more often than once in an interval")
		require.Equal(t, map[string]string{"node/a": "allocated", "node/b": "free"}, next.states())
		require.Equal(t, []string{"node/c"}, next.Removed)

		both, took := w.since(all.Revision)
		require.Zero(t, took)
		require.Equal(t, map[string]string{"node/a": "allocated", "node/b": "free"}, both.states())
		require.Equal(t, []string{"node/c"}, both.Removed)
	})
}

// TestAnItemThatComesBack is not among those that are gone.
func TestAnItemThatComesBack(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, "a", "b")
		all := w.decode(w.get("/api/devices"))
		w.remove("b")
		gone, _ := w.since(all.Revision)
		require.Equal(t, []string{"node/b"}, gone.Removed)
		w.change(func() { w.nodes = append(w.nodes, "b") })
		back, _ := w.since(gone.Revision)
		require.Equal(t, map[string]string{"node/b": "free"}, back.states())
		require.Empty(t, back.Removed)
		back, _ = w.since(all.Revision)
		require.Empty(t, back.Removed)
	})
}

// TestNoChange: an inventory is not even taken, and where it is and says the
// same, no one is told.
func TestNoChange(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, "a")
		all := w.decode(w.get("/api/devices"))
		began := time.Now()
		response := w.get("/api/devices?since=" + all.Revision)
		require.Equal(t, http.StatusNoContent, response.Code)
		require.Equal(t, longPollTimeout, time.Since(began))
		require.Equal(t, 1, w.taken())
		w.change(func() {})
		require.Equal(t, http.StatusNoContent, w.get("/api/devices?since="+all.Revision).Code)
		require.Equal(t, 2, w.taken())
	})
}

// TestRevisionsThatAreNotKnown: they are of another process, or long ago.
func TestRevisionsThatAreNotKnown(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, "a", "b")
		epoch := w.feed.epoch
		for _, revision := range []string{"other-1", "nonsense", epoch + "-0", epoch + "-99", epoch + "-x"} {
			answer, took := w.since(revision)
			require.Zero(t, took, revision)
			require.Empty(t, answer.Since, revision)
			require.Len(t, answer.Items, 2, revision)
		}
	})
}

// TestPagesShareTheWork: however many look, an inventory is taken once a second
// while there are changes.
func TestPagesShareTheWork(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, "a")
		for range 20 {
			revision := w.feed.currentRevision()
			go w.get("/api/devices?since=" + revision)
		}
		synctest.Wait()
		require.Equal(t, 1, w.taken())
		for second := range 10 {
			w.allocate("a", fmt.Sprint(second))
			for range 5 {
				go w.get("/api/devices?since=" + w.feed.currentRevision())
			}
			time.Sleep(inventoryInterval)
			synctest.Wait()
		}
		require.LessOrEqual(t, w.taken(), 11)
		time.Sleep(longPollTimeout)
	})
}

// TestNothingIsKeptWhenNobodyLooks, and nothing is done.
func TestNothingIsKeptWhenNobodyLooks(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, "a")
		first := w.decode(w.get("/api/devices"))
		time.Sleep(keepWithoutViewers - time.Second)
		require.NotNil(t, w.feed.items)
		require.Equal(t, first.Revision, w.decode(w.get("/api/devices")).Revision)
		for range 10 {
			time.Sleep(keepWithoutViewers)
			w.allocate("a", "c")
		}
		synctest.Wait()
		require.Nil(t, w.feed.items)
		require.Equal(t, 1, w.taken())
		answer, took := w.since(first.Revision)
		require.Zero(t, took)
		require.Empty(t, answer.Since, "what was removed meanwhile is not known")
		require.Equal(t, map[string]string{"node/a": "allocated"}, answer.states())
	})
}

func TestRequestsEndWithTheirContext(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, "a")
		revision := w.feed.currentRevision()
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		began := time.Now()
		require.Equal(t, http.StatusServiceUnavailable, w.getIn(ctx, "/api/devices?since="+revision).Code)
		require.Equal(t, 2500*time.Millisecond, time.Since(began))
	})
}

// TestManyRemoved: what is remembered of them has a bound.
func TestManyRemoved(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var names []string
		for i := range maxRemoved + 1 {
			names = append(names, fmt.Sprint("n", i))
		}
		w := newWorld(t, append(names, "stays")...)
		all := w.decode(w.get("/api/devices"))
		w.change(func() { w.nodes = []string{"stays"} })
		answer, _ := w.since(all.Revision)
		require.Empty(t, answer.Since)
		require.Equal(t, map[string]string{"node/stays": "free"}, answer.states())
		require.Empty(t, w.feed.removed)
		w.allocate("stays", "c")
		next, _ := w.since(answer.Revision)
		require.Equal(t, answer.Revision, next.Since)
	})
}

func TestCompression(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var names []string
		for i := range 100 {
			names = append(names, fmt.Sprint("n", i))
		}
		w := newWorld(t, names...)
		encoding := func(response *httptest.ResponseRecorder) string { return response.Header().Get("Content-Encoding") }
		plain, compressed := w.get("/api/devices"), w.get("/api/devices", "Accept-Encoding", "br, gzip")
		require.Empty(t, encoding(plain))
		require.Equal(t, "gzip", encoding(compressed))
		require.Less(t, compressed.Body.Len(), plain.Body.Len()/5)
		require.Equal(t, "Accept-Encoding", plain.Header().Get("Vary"))
		require.Equal(t, w.decode(plain), w.decode(compressed))
		w.allocate("n1", "c")
		time.Sleep(inventoryInterval)
		require.Empty(t, encoding(w.get("/api/devices?since="+w.feed.epoch+"-1", "Accept-Encoding", "gzip")), "not worth it")
	})
}

// TestTaintRulesAreTold: what a DeviceTaintRule does to devices is a change, and so is that the
// rules cannot be read any more.
func TestTaintRulesAreTold(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, "a", "b")
		revision := w.decode(w.get("/api/devices")).Revision
		time.Sleep(inventoryInterval)
		w.change(func() {
			w.rules = []inventory.TaintRule{{
				Selector: &resourcev1.DeviceTaintSelector{Pool: new("b")},
				Taint:    inventory.Taint{Key: "k", Effect: resourcev1.DeviceTaintEffectNoExecute, Rule: "r"},
			}}
		})
		answer, _ := w.since(revision)
		require.Equal(t, map[string]string{"node/b": "tainted"}, answer.states())
		require.Contains(t, w.get("/api/devices").Body.String(), `"rule":"r"`)
		time.Sleep(inventoryInterval)
		w.change(func() { w.rules, w.unseen = nil, "not seen" })
		answer, _ = w.since(answer.Revision)
		require.Equal(t, map[string]string{"node/b": "free"}, answer.states())
		require.Equal(t, "not seen", answer.Unseen)
		time.Sleep(inventoryInterval)
		w.change(func() { w.unseen = "" })
		answer, _ = w.since(answer.Revision)
		require.NotNil(t, answer)
		require.Empty(t, answer.Unseen)
		require.Empty(t, answer.Items)
	})
}

// TestGoneDevicesAreTold until nothing has them any more.
func TestGoneDevicesAreTold(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, "a")
		w.allocate("a", "c")
		answer := w.decode(w.get("/api/devices"))
		require.Empty(t, answer.Gone)
		time.Sleep(inventoryInterval)
		w.change(func() { w.retired["a"] = true })
		answer, _ = w.since(answer.Revision)
		require.Len(t, answer.Gone, 1)
		require.Equal(t, struct{ Node, Pool, Name, State string }{"a", "a", "gpu-0", "gone"}, answer.Gone[0])
		time.Sleep(inventoryInterval)
		w.allocate("a", "")
		answer, _ = w.since(answer.Revision)
		require.Empty(t, answer.Gone)
	})
}
