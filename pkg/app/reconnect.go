package app

import (
	"context"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
)

// Requests that fill the caches are repeated after one to two of these intervals.
// client-go's reflectors wait longer with each failure, up to a minute: the caches
// would remain out of date for as long once the API server is back. Informers of
// client-go 0.37 do not expose the reflectors' Backoff (kubernetes#136943).
const reconnectPeriod = time.Second

// auditID is a header of all that an API server answers (k8s.io/apiserver/pkg/apis/audit).
const auditID = "Audit-Id"

// reconnecting is the transport of requests to the API server.
type reconnecting struct{ http.RoundTripper }

func reconnect(next http.RoundTripper) http.RoundTripper { return reconnecting{next} }

// RoundTrip implements http.RoundTripper. A request of a reflector fails only if
// the API server refuses it; if no API server answers, the request is repeated
// until the reflector ends.
func (t reconnecting) RoundTrip(request *http.Request) (*http.Response, error) {
	for first := true; ; first = false {
		response, err := t.RoundTripper.RoundTrip(request)
		if !fillsCache(request) || !away(response, err) || !pause(request.Context(), wait.Jitter(reconnectPeriod, 1)) {
			return response, err
		}
		status := ""
		if response != nil {
			status = response.Status
			_ = response.Body.Close()
		}
		if first {
			klog.FromContext(request.Context()).Info("Asking the API server until it answers", "path", request.URL.Path, "status", status, "err", err)
		}
	}
}

// fillsCache tells the lists and watches of reflectors from what is asked in
// between. Those have no body, so that they can be sent again.
func fillsCache(request *http.Request) bool {
	query := request.URL.Query()
	return request.Method == http.MethodGet && (query.Has("watch") || query.Has("resourceVersion") || query.Has("limit"))
}

// away reports whether no API server answers, or only a proxy without one behind it, or
// one without etcd.
func away(response *http.Response, err error) bool {
	return err != nil || response.StatusCode >= http.StatusInternalServerError && !isTooLarge(response)
}

// isTooLarge reports whether an API server does not have the resource version that is
// asked for, as when a backup was restored. Reflectors then list anew. It is the one
// 504 with a time to ask again (NewTooLargeResourceVersionError in
// k8s.io/apiserver/pkg/storage).
func isTooLarge(response *http.Response) bool {
	return response.StatusCode == http.StatusGatewayTimeout && response.Header.Get(auditID) != "" && response.Header.Get("Retry-After") != ""
}

// pause reports whether the context outlasts a time.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
