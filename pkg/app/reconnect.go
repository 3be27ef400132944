package app

import (
	"context"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
)

// The API server is asked again after one to two of these by what fills the
// caches. client-go's reflectors wait longer with each failure, after half a
// minute without an API server up to a minute, and have no setting for it: as long
// the caches would stay out of date once it is back.
const reconnectPeriod = time.Second

// reconnecting is the transport of requests to the API server.
type reconnecting struct{ http.RoundTripper }

func reconnect(next http.RoundTripper) http.RoundTripper { return reconnecting{next} }

// RoundTrip implements http.RoundTripper. What a reflector asks fails only where
// the API server says so; where there is none to say anything, it is asked again
// until the reflector ends.
func (t reconnecting) RoundTrip(request *http.Request) (*http.Response, error) {
	for first := true; ; first = false {
		response, err := t.RoundTripper.RoundTrip(request)
		if !fillsCache(request) || !away(response, err) || !pause(request.Context()) {
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

// away tells whether there is nobody to answer, or nobody behind who answers.
func away(response *http.Response, err error) bool {
	return err != nil || response.StatusCode >= http.StatusInternalServerError
}

// pause tells whether the context lasts.
func pause(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(wait.Jitter(reconnectPeriod, 1)):
		return true
	}
}
