package page

import (
	"encoding/json"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/extensions/webpage/timeline"
	"github.com/kwok-dra/kwok-dra/internal/testing/runtest"
)

// remember runs the timeline until the test ends.
func (w *world) remember() {
	runtest.UntilEnd(w.t.Context(), w.t, w.feed.runTimeline)
	synctest.Wait()
}

// happened are the changes that the timeline tells, the newest first.
func (w *world) happened() []timeline.Change {
	w.t.Helper()
	var report struct{ Changes []timeline.Change }
	require.NoError(w.t, json.Unmarshal(w.get("/api/timeline").Body.Bytes(), &report))
	return report.Changes
}

func TestTimeline(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, "a")
		require.Contains(t, w.get("/api/timeline").Body.String(), `"seconds":0,"buckets":[],"changes":[]}`)
		require.Equal(t, http.StatusNotFound, w.get("/api/devices?at=2026-01-01T00:00:00Z").Code)
		w.remember()
		before := time.Now()
		time.Sleep(time.Minute)
		w.allocate("a", "c")
		at := time.Now().UTC()
		answer := w.get("/api/timeline")
		require.JSONEq(t, `[{"at": "`+at.Format(time.RFC3339)+`", "kind": "allocated", "node": "a", "driver": "d", "pool": "a", "device": "gpu-0", "claims": ["default/c"]}]`,
			field(t, answer.Body.Bytes(), "changes"))
		require.Equal(t, "5", field(t, answer.Body.Bytes(), "seconds"))
		now := w.decode(w.get("/api/devices"))
		require.Equal(t, map[string]string{"node/a": "allocated"}, now.states())

		then := w.get("/api/devices?at=" + before.UTC().Format(time.RFC3339))
		require.JSONEq(t, `{
			"at": "`+before.UTC().Format(time.RFC3339)+`",
			"drivers": [{"name": "d", "pools": 1, "incompletePools": 0, "usage": {"used": 0, "total": 1},
				"states": {"free": 1, "blocked": 0, "allocated": 0, "prepared": 0, "failing": 0, "tainted": 0}}],
			"items": [{"id": "node/a", "node": "a", "pools": [{"driver": "d", "name": "a", "generation": 1, "slices": 1, "resourceSliceCount": 1,
				"usage": {"used": 0, "total": 1}, "kind": "`+now.Kinds[0].ID+`", "devices": [{"name": "gpu-0", "state": "free"}]}]}]
		}`, then.Body.String())
		require.Empty(t, then.Header().Get("ETag"))
		require.Equal(t, http.StatusBadRequest, w.get("/api/devices?at=yesterday").Code)
	})
}

func field(t *testing.T, object []byte, name string) string {
	t.Helper()
	var fields map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(object, &fields))
	return string(fields[name])
}

// TestTimelineWhileNobodyLooks: what happens is found once in a while, and where nothing
// does, nothing is done.
func TestTimelineWhileNobodyLooks(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, "a")
		w.remember()
		time.Sleep(time.Hour)
		require.Equal(t, 1, w.taken())
		for _, claim := range []string{"c", "d", "e", ""} {
			w.allocate("a", claim)
			time.Sleep(idleInterval)
			synctest.Wait()
		}
		require.Equal(t, 5, w.taken())
		require.Nil(t, w.feed.items, "nobody looks")
		var kinds []timeline.Kind
		for _, change := range w.happened() {
			kinds = append(kinds, change.Kind)
		}
		require.Equal(t, []timeline.Kind{timeline.Released, timeline.Allocated, timeline.Allocated, timeline.Allocated}, kinds)
	})
}

// TestTimelineIsThrifty: the longer an inventory takes, the fewer there are.
func TestTimelineIsThrifty(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, "a")
		slices := w.feed.source.Slices
		w.feed.source.Slices = func() []inventory.Slice {
			time.Sleep(time.Second)
			return slices()
		}
		began := time.Now()
		w.remember()
		for time.Since(began) < time.Hour {
			w.allocate("a", time.Now().String())
			time.Sleep(time.Second)
		}
		synctest.Wait()
		require.InDelta(t, time.Hour/(101*time.Second), w.taken(), 2)
	})
}

// TestTimelineTellsViewers: what it finds is new to them too.
func TestTimelineTellsViewers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, "a")
		all := w.decode(w.get("/api/devices"))
		w.remember()
		w.allocate("a", "c")
		time.Sleep(idleInterval)
		synctest.Wait()
		taken := w.taken()
		answer, took := w.since(all.Revision)
		require.Zero(t, took)
		require.Equal(t, map[string]string{"node/a": "allocated"}, answer.states())
		require.Equal(t, taken, w.taken())
	})
}
