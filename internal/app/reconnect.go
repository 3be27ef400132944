package app

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
)

// Requests that fill the caches are repeated after one to two of these intervals. client-go's reflectors wait longer with
// each failure, up to a minute: the caches would remain out of date for as long once the API server is back. Informers of
// client-go 0.37 do not expose the reflectors' Backoff (kubernetes#136943).
const reconnectPeriod = time.Second

// auditID is a header of all that an API server answers (k8s.io/apiserver/pkg/apis/audit).
const auditID = "Audit-Id"

// reconnecting is the transport of requests to the API server.
type reconnecting struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper. A request of a reflector fails only if the API server refuses it; if no API server
// answers, the request is repeated until the reflector ends.
//
// An API server accepts a watch from a version that it does not have yet, and is silent until it has. After a restore of
// etcd from a backup that can last for hours, so such a watch is answered as expired: reflectors list anew then.
func (t reconnecting) RoundTrip(request *http.Request) (*http.Response, error) {
	if t.isAhead(request) {
		klog.FromContext(request.Context()).Info("The API server has gone back to older resource versions, as after a restore of etcd from a backup; listing anew", "path", request.URL.Path)
		status := apierrors.NewResourceExpired("the resource version is newer than that of the API server").Status()
		status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		body, err := json.Marshal(status)
		if err != nil {
			return nil, err
		}
		return &http.Response{
			StatusCode: http.StatusGone, Header: http.Header{"Content-Type": {"application/json"}}, Request: request, Body: io.NopCloser(bytes.NewReader(body)),
		}, nil
	}
	// Reflectors list and watch. What is asked in between has other parameters, or a body that cannot be sent again.
	query := request.URL.Query()
	isOfReflector := request.Method == http.MethodGet && (query.Has("watch") || query.Has("resourceVersion") || query.Has("limit"))
	for first := true; ; first = false {
		response, err := t.RoundTripper.RoundTrip(request)
		if !isOfReflector || !isServerAway(response, err) {
			return response, err
		}
		select {
		case <-request.Context().Done():
			return response, err
		case <-time.After(wait.Jitter(reconnectPeriod, 1)):
		}
		status := ""
		if response != nil {
			status = response.Status
			_ = response.Body.Close()
		}
		if first {
			klog.FromContext(request.Context()).Info("The API server does not answer; retrying until it does", "path", request.URL.Path, "status", status, "err", err)
		}
	}
}

// probeTimeout bounds the question for the API server's newest version.
const probeTimeout = 10 * time.Second

// isAhead reports whether a watch is to begin at a version that the API server does not have yet. It is false where that is
// not known.
func (t reconnecting) isAhead(request *http.Request) bool {
	query := request.URL.Query()
	from := query.Get("resourceVersion")
	if request.Method != http.MethodGet || !query.Has("watch") || from == "" || from == "0" {
		return false
	}
	ctx, cancel := context.WithTimeout(request.Context(), probeTimeout)
	defer cancel()
	probe := request.Clone(ctx)
	newest := url.Values{"limit": {"1"}}
	if selector := query.Get("fieldSelector"); strings.HasPrefix(selector, "metadata.name=") { // the role may allow this object only
		newest.Set("fieldSelector", selector)
	}
	probe.URL.RawQuery = newest.Encode()
	probe.Header.Set("Accept", "application/json")
	response, err := t.RoundTripper.RoundTrip(probe)
	if err != nil {
		return false
	}
	defer func() { _ = response.Body.Close() }()
	var list metav1.PartialObjectMetadataList
	if response.StatusCode != http.StatusOK || json.NewDecoder(response.Body).Decode(&list) != nil {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(list.ResourceVersion, from)
	return err == nil && order < 0
}

// isServerAway reports whether no API server answers, or only a proxy without one behind it, or one
// without etcd. An API server that does not have the resource version that is asked for, as when a backup
// was restored, is not away: reflectors then list anew. That is the one 504 with a time to ask again
// (NewTooLargeResourceVersionError in k8s.io/apiserver/pkg/storage).
func isServerAway(response *http.Response, err error) bool {
	if err != nil {
		return true
	}
	isTooLarge := response.StatusCode == http.StatusGatewayTimeout && response.Header.Get(auditID) != "" && response.Header.Get("Retry-After") != ""
	return response.StatusCode >= http.StatusInternalServerError && !isTooLarge
}
