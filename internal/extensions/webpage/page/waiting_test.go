package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/why"
)

func TestWaiting(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t)
		since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		w.waiting = []WaitingPod{
			{Namespace: "b", Name: "alone", Reason: "no devices", Since: since},
			{Namespace: "a", Name: "p-1", Owner: "Job/p", Reason: "no devices", Since: since},
			{Namespace: "a", Name: "p-0", Owner: "Job/p", Reason: "no devices", Since: since.Add(-time.Minute)},
			{Namespace: "a", Name: "p-2", Owner: "Job/p", Node: "n", Reason: "claim p-2-gpu-x7k2v: crashed", Since: since, Retry: since.Add(time.Minute)},
			{Namespace: "a", Name: "p-3", Owner: "Job/p", Node: "m", Asks: "template q", Reason: "claim p-3-gpu-b9r4w: crashed", Since: since, Retry: since.Add(time.Second)},
			{Namespace: "b", Name: "other", Reason: "no devices", Since: since},
			{Namespace: "c", Name: "bare-10", Asks: "template gpu", Reason: "no devices on 4 nodes", Since: since},
			{Namespace: "c", Name: "bare-9", Asks: "template gpu", Reason: "no devices on 3 nodes", Since: since},
		}
		const want = `{"groups": [
			{"namespace": "a", "owner": "Job/p", "state": "unscheduled", "reason": "no devices", "count": 2, "pods": ["p-0", "p-1"], "since": "2026-01-02T03:03:05Z"},
			{"namespace": "a", "owner": "Job/p", "state": "preparing", "reason": "claim p-2-gpu-x7k2v: crashed", "count": 2, "pods": ["p-2", "p-3"], "since": "2026-01-02T03:04:05Z", "retry": "2026-01-02T03:04:06Z"},
			{"namespace": "c", "state": "unscheduled", "reason": "no devices on 3 nodes", "count": 2, "pods": ["bare-9", "bare-10"], "since": "2026-01-02T03:04:05Z"},
			{"namespace": "b", "state": "unscheduled", "reason": "no devices", "count": 1, "pods": ["alone"], "since": "2026-01-02T03:04:05Z"},
			{"namespace": "b", "state": "unscheduled", "reason": "no devices", "count": 1, "pods": ["other"], "since": "2026-01-02T03:04:05Z"}
		]}`
		require.JSONEq(t, want, w.get("/api/waiting").Body.String())
		w.waiting = nil
		require.JSONEq(t, want, w.get("/api/waiting").Body.String(), "it is asked for once, however many look")
		time.Sleep(waitingCacheTime)
		require.JSONEq(t, `{"groups": []}`, w.get("/api/waiting").Body.String())
	})
}

// TestWhyGroupsWait: the cluster is read once for the first groups, however many look, and seldom.
func TestWhyGroupsWait(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var asked [][]types.NamespacedName
		var fails error
		pods := []WaitingPod{{Namespace: "a", Name: "p-0", Owner: "Job/p", Reason: "0/3 nodes are available"}}
		w := &waiting{
			ask: func(context.Context) ([]WaitingPod, error) { return slices.Clone(pods), nil },
			why: &explaining{ask: func(_ context.Context, pods []types.NamespacedName) ([]*why.Answer, error) {
				asked = append(asked, pods)
				time.Sleep(time.Second)
				var answers []*why.Answer
				for _, pod := range pods {
					answers = append(answers, &why.Answer{Subject: why.Subject{Namespace: pod.Namespace, Pod: pod.Name}, Reason: "no node has 16", Details: []string{"nearest: n"}})
				}
				return answers, fails
			}},
		}
		world := newWorld(t)
		world.handler = http.HandlerFunc(w.serveWaiting)
		get := func(path string) waitingAnswer {
			var answer waitingAnswer
			require.NoError(t, json.Unmarshal(world.get(path).Body.Bytes(), &answer))
			return answer
		}
		require.Nil(t, get("/api/waiting").Groups[0].Why, "this one is quick")
		want := &Verdict{Pod: "p-0", Reason: "no node has 16", Details: []string{"nearest: n"}}
		for range 3 {
			require.Equal(t, want, get("/api/waiting?why").Groups[0].Why)
		}
		require.Len(t, asked, 1)
		require.Equal(t, want, get("/api/waiting").Groups[0].Why)

		for i := range maxExplainedGroups + 5 {
			pods = append(pods, WaitingPod{Namespace: "b", Name: fmt.Sprint("q-", i), Owner: fmt.Sprint("Job/q-", i)})
		}
		pods[0].Reason = "0/4 nodes are available"
		time.Sleep(explainIdleFactor*time.Second - 2*time.Second)
		answer := get("/api/waiting?why")
		require.Len(t, asked, 1, "it took a second, and twenty have not passed")
		require.Equal(t, want, answer.Groups[0].Why, "whatever the scheduler says meanwhile")
		require.Nil(t, answer.Groups[1].Why)
		time.Sleep(2 * time.Second)
		answer = get("/api/waiting?why")
		require.Len(t, asked[1], maxExplainedGroups)
		require.Equal(t, "q-0", answer.Groups[1].Why.Pod)
		require.Nil(t, answer.Groups[maxExplainedGroups].Why)

		fails = errors.New("there are 10000 nodes")
		time.Sleep(explainIdleFactor * time.Second)
		require.Equal(t, "there are 10000 nodes", get("/api/waiting?why").Unexplained)
		time.Sleep(waitingCacheTime)
		get("/api/waiting?why")
		require.Len(t, asked, 3, "a failure is not repeated at once")
	})
}

func TestWaitingIsNotKnown(t *testing.T) {
	t.Parallel()
	w := &waiting{ask: func(context.Context) ([]WaitingPod, error) { return nil, errors.New("list pods: forbidden") }}
	world := newWorld(t)
	defer world.feed.forget.Stop()
	world.handler = http.HandlerFunc(w.serveWaiting)
	response := world.get("/api/waiting")
	require.Equal(t, http.StatusBadGateway, response.Code)
	require.Equal(t, "list pods: forbidden\n", response.Body.String())
}

func TestManyPodsOfOneOwner(t *testing.T) {
	t.Parallel()
	pods := make([]WaitingPod, maxNamedPods+5)
	for i := range pods {
		pods[i] = WaitingPod{Namespace: "a", Name: string(rune('a' + i)), Owner: "Job/p", Node: "n"}
	}
	groups := groupsOf(pods)
	require.Len(t, groups, 1)
	require.Equal(t, len(pods), groups[0].Count)
	require.Len(t, groups[0].Pods, maxNamedPods)
	require.Equal(t, "n", groups[0].Node)
}
