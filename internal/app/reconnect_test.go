package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestRestoredBackup: an API server that has older versions than it once had says so,
// and a reflector is to know.
func TestRestoredBackup(t *testing.T) {
	t.Parallel()
	answer := &http.Response{StatusCode: http.StatusGatewayTimeout, Header: http.Header{"Retry-After": {"1"}}, Body: http.NoBody}
	require.True(t, isServerAway(answer, nil), "of a proxy")
	answer.Header.Set("Audit-ID", "b7a2")
	require.False(t, isServerAway(answer, nil))
	answer.Header.Del("Retry-After")
	require.True(t, isServerAway(answer, nil), "of one that has not got it in time")
	answer.StatusCode = http.StatusServiceUnavailable
	require.True(t, isServerAway(answer, nil), "of one that is shutting down")
}

// outage is an API server that is not there for a while, and that has one ConfigMap then.
type outage struct {
	over  time.Time
	code  int
	asked atomic.Int64
}

func (o *outage) RoundTrip(request *http.Request) (*http.Response, error) {
	o.asked.Add(1)
	answer := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: request}
	switch {
	case time.Now().Before(o.over) && o.code == 0:
		return nil, errors.New("connection refused")
	case time.Now().Before(o.over):
		answer.StatusCode, answer.Body = o.code, io.NopCloser(strings.NewReader(`{"kind": "Status", "apiVersion": "v1", "status": "Failure"}`))
	case request.URL.Query().Has("sendInitialEvents"):
		answer.StatusCode, answer.Body = http.StatusNotFound, http.NoBody // as where watch lists are not known
	case request.URL.Query().Has("watch"):
		events, end := io.Pipe()
		context.AfterFunc(request.Context(), func() { _ = end.CloseWithError(request.Context().Err()) })
		answer.Body = events
	default:
		answer.Body = io.NopCloser(strings.NewReader(`{"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": [{"metadata": {"name": "c"}}]}`))
	}
	return answer, nil
}

func (o *outage) client(t *testing.T) kubernetes.Interface {
	client, err := kubernetes.NewForConfigAndClient(&rest.Config{QPS: -1}, &http.Client{Transport: reconnecting{o}})
	require.NoError(t, err)
	return client
}

// TestReconnect: however long the API server was away, the caches are filled soon
// after it is back.
func TestReconnect(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]int{"nobody listens": 0, "no etcd behind": http.StatusInternalServerError, "shutting down": http.StatusServiceUnavailable} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(quiet(t))
				o := &outage{over: time.Now().Add(10 * time.Minute), code: code}
				factory := informers.NewSharedInformerFactory(o.client(t), 0)
				informer := factory.Core().V1().ConfigMaps().Informer()
				var running sync.WaitGroup
				defer running.Wait()
				defer cancel()
				running.Go(func() { informer.RunWithContext(ctx) })
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				require.LessOrEqual(t, o.asked.Load(), int64(10*60))
				time.Sleep(3 * reconnectPeriod)
				synctest.Wait()
				require.Len(t, informer.GetStore().List(), 1)
			})
		})
	}
}

// TestNoReconnect: what is asked by those who try again themselves fails at once.
func TestNoReconnect(t *testing.T) {
	t.Parallel()
	o := &outage{over: time.Now().Add(time.Hour)}
	_, err := o.client(t).CoreV1().ConfigMaps("default").Get(t.Context(), "c", metav1.GetOptions{})
	require.ErrorContains(t, err, "connection refused")
	_, err = o.client(t).CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{}, metav1.CreateOptions{})
	require.ErrorContains(t, err, "connection refused")
	require.EqualValues(t, 2, o.asked.Load())
}

// TestReconnectEnds with the one who asks.
func TestReconnectEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		o := &outage{over: time.Now().Add(time.Hour)}
		_, err := o.client(t).CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		require.Error(t, err)
		require.Greater(t, o.asked.Load(), int64(20))
	})
}

// restored is an API server with one ConfigMap, whose versions go back when etcd is restored from a backup.
type restored struct {
	mu      sync.Mutex
	version int
	cut     context.CancelFunc
}

func (r *restored) RoundTrip(request *http.Request) (*http.Response, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	answer := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}, "Audit-Id": {"b7a2"}}, Request: request}
	query := request.URL.Query()
	from, _ := strconv.Atoi(query.Get("resourceVersion"))
	switch {
	case query.Has("sendInitialEvents"):
		answer.StatusCode, answer.Body = http.StatusNotFound, http.NoBody
	case query.Has("watch"): // silent, also where it is from a version that is not there yet
		ctx, cut := context.WithCancel(request.Context())
		r.cut = cut
		events, end := io.Pipe()
		context.AfterFunc(ctx, func() { _ = end.CloseWithError(io.EOF) })
		answer.Body = events
	case from > r.version:
		answer.StatusCode = http.StatusGatewayTimeout
		answer.Header.Set("Retry-After", "1")
		answer.Body = io.NopCloser(strings.NewReader(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Timeout", "code": 504,
			"details": {"retryAfterSeconds": 1, "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]}}`))
	default:
		answer.Body = io.NopCloser(strings.NewReader(fmt.Sprintf(`{"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "%d"},
			"items": [{"metadata": {"name": "c", "resourceVersion": "%d"}}]}`, r.version, r.version)))
	}
	return answer, nil
}

// TestWatchesOfRestoredBackup: a cache that watches from a version that the API server no longer has is filled anew, though the
// API server accepts the watch and is silent.
func TestWatchesOfRestoredBackup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(quiet(t))
		server := &restored{version: 1000}
		client, err := kubernetes.NewForConfigAndClient(&rest.Config{QPS: -1}, &http.Client{Transport: reconnecting{server}})
		require.NoError(t, err)
		informer := informers.NewSharedInformerFactory(client, 0).Core().V1().ConfigMaps().Informer()
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		running.Go(func() { informer.RunWithContext(ctx) })
		version := func() string {
			synctest.Wait()
			require.Len(t, informer.GetStore().List(), 1)
			return informer.GetStore().List()[0].(*corev1.ConfigMap).ResourceVersion
		}
		time.Sleep(time.Minute)
		require.Equal(t, "1000", version())
		server.mu.Lock()
		server.version = 500
		server.cut()
		server.mu.Unlock()
		time.Sleep(time.Minute)
		require.Equal(t, "500", version())
	})
}
