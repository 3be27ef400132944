package page

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/why"
)

func TestWhy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.feed.forget.Stop()
	e := &explaining{ask: func(_ context.Context, pods []types.NamespacedName) ([]*why.Answer, error) {
		switch pods[0].Name {
		case "gone":
			return nil, nil
		case "secret":
			return nil, errors.New("list deviceclasses: forbidden")
		}
		return []*why.Answer{{Subject: why.Subject{Namespace: pods[0].Namespace, Pod: pods[0].Name}, State: why.Unscheduled, Reason: "no node has the devices", Details: []string{"node n"}}}, nil
	}}
	w.handler = http.HandlerFunc(e.serveWhy)
	for url, want := range map[string]struct {
		status int
		text   string
	}{
		"/api/why?namespace=a&pod=p":      {http.StatusOK, `{"namespace":"a","pod":"p","state":"Unscheduled","reason":"no node has the devices","details":["node n"]}`},
		"/api/why?namespace=a&pod=gone":   {http.StatusNotFound, "there is no Pod gone in namespace a\n"},
		"/api/why?namespace=a&pod=secret": {http.StatusBadGateway, "list deviceclasses: forbidden\n"},
		"/api/why?pod=p":                  {http.StatusBadRequest, "give namespace and pod: /api/why?namespace=NAMESPACE&pod=POD\n"},
		"/api/why?namespace=a":            {http.StatusBadRequest, "give namespace and pod: /api/why?namespace=NAMESPACE&pod=POD\n"},
	} {
		response := w.get(url)
		require.Equal(t, want.status, response.Code, url)
		require.Equal(t, want.text, response.Body.String(), url)
	}
}

// TestWhyIsLimitedPerClient: whoever asks without end keeps no answer from others.
func TestWhyIsLimitedPerClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.feed.forget.Stop()
		asked := 0
		handler := w.feed.newHandler(&Options{Source: w.feed.source, Labels: w.labels, Slice: w.slice, Why: func(context.Context, []types.NamespacedName) ([]*why.Answer, error) {
			asked++
			return []*why.Answer{{}}, nil
		}})
		get := func(path, client string) *httptest.ResponseRecorder {
			response := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
			r.RemoteAddr = client
			handler.ServeHTTP(response, r)
			return response
		}
		for i := range 10 * costlyAtOnce {
			response := get("/api/why?namespace=a&pod=p", fmt.Sprint("192.0.2.1:", i))
			require.Equal(t, i < costlyAtOnce, response.Code == http.StatusOK)
		}
		require.Equal(t, costlyAtOnce, asked)
		refused := get("/api/device?driver=d&pool=p&device=d", "192.0.2.1:9")
		require.Equal(t, http.StatusTooManyRequests, refused.Code, "it costs the API server as well")
		require.Equal(t, "1", refused.Header().Get("Retry-After"))
		require.Equal(t, http.StatusOK, get("/api/why?namespace=a&pod=p", "192.0.2.2:1").Code)
		time.Sleep(time.Second) // of the bubble's clock
		require.Equal(t, http.StatusOK, get("/api/why?namespace=a&pod=p", "192.0.2.1:1").Code)
	})
}

// TestWhyOneAtATime: a client has one question in the queue.
func TestWhyOneAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asking, end := 0, make(chan struct{})
		e := &explaining{ask: func(context.Context, []types.NamespacedName) ([]*why.Answer, error) {
			asking++
			<-end
			return []*why.Answer{{}}, nil
		}}
		var codes [3]int
		for i := range codes {
			go func() {
				response := httptest.NewRecorder()
				e.serveWhy(response, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/why?namespace=a&pod=p", http.NoBody))
				codes[i] = response.Code
			}()
			synctest.Wait()
		}
		require.Equal(t, [3]int{0, 429, 429}, codes)
		close(end)
		synctest.Wait()
		require.Equal(t, [3]int{200, 429, 429}, codes)
		require.Equal(t, 1, asking)
	})
}
