package page

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kwok-dra/kwok-dra/pkg/why"
)

func TestWhy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.feed.forget.Stop()
	e := &explaining{ask: func(_ context.Context, namespace, pod string) (*why.Answer, error) {
		switch pod {
		case "gone":
			return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, pod)
		case "secret":
			return nil, errors.New("list deviceclasses: forbidden")
		}
		return &why.Answer{Namespace: namespace, Pod: pod, State: why.Unscheduled, Reason: "no node has the devices", Details: []string{"node n"}}, nil
	}}
	w.handler = http.HandlerFunc(e.serve)
	for url, want := range map[string]struct {
		status int
		text   string
	}{
		"/api/why?namespace=a&pod=p":      {http.StatusOK, `{"namespace":"a","pod":"p","state":"Unscheduled","reason":"no node has the devices","details":["node n"]}`},
		"/api/why?namespace=a&pod=gone":   {http.StatusNotFound, "pods \"gone\" not found\n"},
		"/api/why?namespace=a&pod=secret": {http.StatusBadGateway, "list deviceclasses: forbidden\n"},
		"/api/why?pod=p":                  {http.StatusBadRequest, "give namespace and pod: /api/why?namespace=NAMESPACE&pod=POD\n"},
		"/api/why?namespace=a":            {http.StatusBadRequest, "give namespace and pod: /api/why?namespace=NAMESPACE&pod=POD\n"},
	} {
		response := w.get(url)
		require.Equal(t, want.status, response.Code, url)
		require.Equal(t, want.text, response.Body.String(), url)
	}
}
