package page

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWaiting(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t)
		since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		w.waiting = []WaitingPod{
			{Namespace: "b", Name: "alone", Reason: "no devices", Since: since},
			{Namespace: "a", Name: "p-1", Owner: "Job/p", Reason: "no devices", Since: since},
			{Namespace: "a", Name: "p-0", Owner: "Job/p", Reason: "no devices", Since: since.Add(-time.Minute)},
			{Namespace: "a", Name: "p-2", Owner: "Job/p", Node: "n", Reason: "crashed", Since: since, Retry: since.Add(time.Minute)},
			{Namespace: "a", Name: "p-3", Owner: "Job/p", Node: "m", Reason: "crashed", Since: since, Retry: since.Add(time.Second)},
			{Namespace: "b", Name: "other", Reason: "no devices", Since: since},
		}
		const want = `{"groups": [
			{"namespace": "a", "owner": "Job/p", "state": "unscheduled", "reason": "no devices", "count": 2, "pods": ["p-0", "p-1"], "since": "2026-01-02T03:03:05Z"},
			{"namespace": "a", "owner": "Job/p", "state": "preparing", "reason": "crashed", "count": 2, "pods": ["p-2", "p-3"], "since": "2026-01-02T03:04:05Z", "retry": "2026-01-02T03:04:06Z"},
			{"namespace": "b", "state": "unscheduled", "reason": "no devices", "count": 1, "pods": ["alone"], "since": "2026-01-02T03:04:05Z"},
			{"namespace": "b", "state": "unscheduled", "reason": "no devices", "count": 1, "pods": ["other"], "since": "2026-01-02T03:04:05Z"}
		]}`
		require.JSONEq(t, want, w.get("/api/waiting").Body.String())
		w.waiting = nil
		require.JSONEq(t, want, w.get("/api/waiting").Body.String(), "it is asked for once, however many look")
		time.Sleep(waitingFor)
		require.JSONEq(t, `{"groups": []}`, w.get("/api/waiting").Body.String())
	})
}

func TestWaitingIsNotKnown(t *testing.T) {
	t.Parallel()
	w := &waiting{ask: func(context.Context) ([]WaitingPod, error) { return nil, errors.New("list pods: forbidden") }}
	world := newWorld(t)
	defer world.feed.forget.Stop()
	world.handler = http.HandlerFunc(w.serve)
	response := world.get("/api/waiting")
	require.Equal(t, http.StatusBadGateway, response.Code)
	require.Equal(t, "list pods: forbidden\n", response.Body.String())
}

func TestManyPodsOfOneOwner(t *testing.T) {
	t.Parallel()
	pods := make([]WaitingPod, namedPods+5)
	for i := range pods {
		pods[i] = WaitingPod{Namespace: "a", Name: string(rune('a' + i)), Owner: "Job/p", Node: "n"}
	}
	groups := groupsOf(pods)
	require.Len(t, groups, 1)
	require.Equal(t, len(pods), groups[0].Count)
	require.Len(t, groups[0].Pods, namedPods)
	require.Equal(t, "n", groups[0].Node)
}
