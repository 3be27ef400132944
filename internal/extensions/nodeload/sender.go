package nodeload

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

const (
	// requestTimeout is after how long the API server ends a request that is no watch.
	requestTimeout = time.Minute
	// maxTries is how often client-go sends a request that the API server asks to send again.
	maxTries = 11
	// maxAnswer bounds what is read of one answer.
	maxAnswer = 32 << 20
	// maxDials is how many watches are opened at a time. Go's HTTP/2 client dials once for each request that finds no
	// connection with a free stream, so a fleet that starts at once would make a connection for each watch.
	maxDials = 16
)

// sender sends requests to one API server. All identities share its connections.
type sender struct {
	transport http.RoundTripper
	server    *url.URL
	metrics   *Metrics
	dials     chan struct{}
}

// newSender makes a sender with connections of its own, so that the rest of kwok-dra never waits for a stream.
func newSender(config *rest.Config, metrics *Metrics) (*sender, error) {
	own := rest.CopyConfig(config)
	own.WrapTransport = nil // answers are as real components get them
	own.Proxy = http.ProxyFromEnvironment
	transport, err := rest.TransportFor(own) // which shares connections only between configurations without a Proxy
	if err != nil {
		return nil, fmt.Errorf("make a transport for --node-load: %w", err)
	}
	server, _, err := rest.DefaultServerUrlFor(own)
	if err != nil {
		return nil, fmt.Errorf("find the API server for --node-load: %w", err)
	}
	return &sender{transport: transport, server: server, metrics: metrics, dials: make(chan struct{}, maxDials)}, nil
}

// client sends the requests of one kubelet or driver, at its rate.
type client struct {
	*sender
	identity

	limiter *rate.Limiter
}

func (s *sender) newClient(of identity) *client {
	return &client{sender: s, identity: of, limiter: rate.NewLimiter(rate.Limit(of.limits.perSecond), of.limits.burst)}
}

// answer is what the API server said to a request.
type answer struct {
	code int
	body []byte
}

// send sends a request that is due at a time, as soon as the client's rate permits. It returns an answer without a code if
// there is none.
func (c *client) send(ctx context.Context, due time.Time, r *request) answer {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for try := 1; ; try++ {
		if delay := c.limiter.Reserve().Delay(); delay > 0 {
			due = time.Now().Add(delay)
			if !waitFor(ctx, delay) {
				return answer{}
			}
		}
		c.metrics.observeLag(ctx, c.component, time.Since(due))
		response, err := c.roundTrip(ctx, r)
		if err != nil {
			if ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded) {
				c.metrics.count(ctx, c.component, r, "error", err)
			}
			return answer{}
		}
		body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
		_ = response.Body.Close()
		c.countAnswer(ctx, r, response.StatusCode, err, body)
		pause, err := strconv.Atoi(response.Header.Get("Retry-After"))
		isBusy := response.StatusCode == http.StatusTooManyRequests || response.StatusCode >= http.StatusInternalServerError
		if err != nil || !isBusy || try == maxTries {
			return answer{response.StatusCode, body}
		}
		due = time.Now().Add(time.Duration(pause) * time.Second)
		if !waitFor(ctx, time.Until(due)) {
			return answer{response.StatusCode, body}
		}
	}
}

// unrelated is why the node authorizer refuses to show a node what no Pod on it needs, or none of which it knows yet. Real
// kubelets see that, too.
const unrelated = "no relationship found between node"

func (a answer) isUnrelated() bool {
	return a.code == http.StatusForbidden && strings.Contains(messageOf(a.body), unrelated)
}

// countAnswer counts an answer, which is a failure if the identity lacks a right.
func (c *client) countAnswer(ctx context.Context, r *request, code int, err error, body []byte) {
	if err == nil && (code == http.StatusUnauthorized || code == http.StatusForbidden) {
		if message := messageOf(body); !strings.Contains(message, unrelated) {
			err = fmt.Errorf("the API server refused it: %s", message)
		}
	}
	c.metrics.count(ctx, c.component, r, strconv.Itoa(code), err)
}

// messageOf returns the message of a metav1.Status in either encoding.
func messageOf(body []byte) string {
	var status metav1.Status
	if unmarshalBody(body, &status) != nil && json.Unmarshal(body, &status) != nil {
		return "no Status"
	}
	return status.Message
}

func (c *client) roundTrip(ctx context.Context, r *request) (*http.Response, error) {
	at := *c.server
	at.Path += r.path
	at.RawQuery = r.query.Encode()
	sent, err := http.NewRequestWithContext(ctx, methods[r.verb], at.String(), bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	maps.Copy(sent.Header, c.header)
	if len(r.body) == 0 {
		sent.Body, sent.GetBody = http.NoBody, nil
	} else {
		sent.Header.Set("Content-Type", r.contentType)
	}
	return c.transport.RoundTrip(sent)
}

// waitFor returns false if ctx ends first.
func waitFor(ctx context.Context, delay time.Duration) bool {
	if delay <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// logFailure says why requests fail.
func logFailure(ctx context.Context, component string, r *request, err error) {
	klog.FromContext(ctx).Error(err, "Failed to send a request of --node-load; its load is missing", "component", component, "verb", r.verb, "resource", r.resource)
}
