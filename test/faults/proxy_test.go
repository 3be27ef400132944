package faults

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// proxy stands between the sidecar and the API server. Without a schedule it
// passes everything on.
type proxy struct {
	target    *url.URL
	transport http.RoundTripper
	server    *httptest.Server
	// touch changes an object at the API server in another client's place.
	touch func(ctx context.Context, path string) error

	schedule atomic.Pointer[schedule]
	// cut is set while nothing gets through.
	cut    atomic.Bool
	ledger *ledger
}

// newProxy makes a proxy to the API server of a kubeconfig of its administrator.
func newProxy(t testing.TB, admin *rest.Config, ledger *ledger, touch func(ctx context.Context, path string) error) (*proxy, error) {
	target, err := url.Parse(admin.Host)
	if err != nil {
		return nil, fmt.Errorf("parse address of the API server: %w", err)
	}
	transport, err := rest.TransportFor(&rest.Config{
		Host: admin.Host, TLSClientConfig: rest.TLSClientConfig{CAData: admin.CAData, CAFile: admin.CAFile},
		// The proxy is not to add waiting of its own.
		Timeout: 0,
	})
	if err != nil {
		return nil, fmt.Errorf("make transport to the API server: %w", err)
	}
	p := &proxy{target: target, transport: transport, touch: touch, ledger: ledger}
	p.server = httptest.NewUnstartedServer(p)
	p.server.EnableHTTP2 = true
	p.server.Config.ErrorLog = log.New(io.Discard, "", 0) // connections break off all the time
	p.server.StartTLS()                                   // a client sends its token over TLS only
	t.Cleanup(p.server.Close)
	return p, nil
}

// kubeconfig writes that of the sidecar anew, to go through the proxy.
func (p *proxy) kubeconfig(from, dir string) (string, error) {
	config, err := clientcmd.LoadFromFile(from)
	if err != nil {
		return "", fmt.Errorf("read kubeconfig of the sidecar: %w", err)
	}
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	for _, cluster := range config.Clusters {
		cluster.Server, cluster.CertificateAuthority, cluster.CertificateAuthorityData = p.server.URL, "", authority
	}
	path := filepath.Join(dir, "through-proxy.kubeconfig.yaml")
	return path, clientcmd.WriteToFile(*config, path)
}

// ServeHTTP implements http.Handler.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, err := callOf(r)
	if err != nil || p.cut.Load() {
		panic(http.ErrAbortHandler) // the sidecar has gone in mid-request, or there is no network
	}
	p.ledger.note(c)
	fault := none
	if s := p.schedule.Load(); s != nil {
		fault = s.next(c)
	}
	if fault != none {
		p.ledger.fault(fault)
	}
	p.play(w, r, c, fault)
}

// play answers a call with a fault.
func (p *proxy) play(w http.ResponseWriter, r *http.Request, c call, fault fault) {
	s := p.schedule.Load()
	pass := whole
	if c.watch {
		pass = func(w io.Writer, response *http.Response) error { return p.pass(r.Context(), c, w, response) }
	}
	switch fault {
	case dropBefore:
		panic(http.ErrAbortHandler)
	case dropAfter:
		p.execute(r)
		panic(http.ErrAbortHandler)
	case failAfter:
		p.execute(r)
		answer(w, timedOut)
	case truncate:
		p.relay(w, r, cutShort)
	case delay:
		sleep(r.Context(), s.delay(c))
		p.relay(w, r, pass)
	case conflict:
		p.conflict(w, r, c)
	case expireStream:
		streamExpired(w, r)
	case stall, cutCleanly, cutInFrame:
		p.relay(w, r, func(w io.Writer, response *http.Response) error { return s.disturb(r.Context(), fault, w, response) })
	default:
		if status := statuses[fault]; status.code != 0 {
			answer(w, status)
			return
		}
		p.relay(w, r, pass)
	}
}

// partition lets nothing through for a while, and breaks off what is on its way.
func (p *proxy) partition(ctx context.Context, length time.Duration) {
	p.cut.Store(true)
	defer p.cut.Store(false)
	p.server.CloseClientConnections()
	sleep(ctx, length)
}

// conflict has a write lose a race. Where the write names a resource version the
// race is a real one: the object is changed first, and the server itself refuses.
func (p *proxy) conflict(w http.ResponseWriter, r *http.Request, c call) {
	if !c.guarded {
		answer(w, lostRace)
		return
	}
	if err := p.touch(r.Context(), c.path); err != nil {
		p.relay(w, r, whole) // there is nothing to change
		return
	}
	p.relay(w, r, whole)
}

// execute has the API server do what was asked, and drops its answer.
func (p *proxy) execute(r *http.Request) {
	response, err := p.forward(r)
	if err != nil {
		return
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.Copy(io.Discard, response.Body)
}

func (p *proxy) forward(r *http.Request) (*http.Response, error) {
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host, out.Host, out.RequestURI = p.target.Scheme, p.target.Host, p.target.Host, ""
	return p.transport.RoundTrip(out)
}

// relay passes a call on, and its answer back with pass, which ends it cleanly
// or, with an error, breaks it off.
func (p *proxy) relay(w http.ResponseWriter, r *http.Request, pass func(w io.Writer, response *http.Response) error) {
	response, err := p.forward(r)
	if err != nil {
		panic(http.ErrAbortHandler) // as where nobody listens
	}
	defer func() { _ = response.Body.Close() }()
	maps.Copy(w.Header(), response.Header)
	w.WriteHeader(response.StatusCode)
	flush(w)
	if err := pass(flushing{w}, response); err != nil {
		panic(http.ErrAbortHandler)
	}
}

func whole(w io.Writer, response *http.Response) error {
	_, err := io.Copy(w, response.Body)
	return err
}

var errCut = errors.New("cut")

// cutShort breaks an answer off in its middle.
func cutShort(w io.Writer, response *http.Response) error {
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if _, err := w.Write(body[:len(body)/2]); err != nil {
		return err
	}
	return errCut
}

// flushing sends each write at once, as watches need it.
type flushing struct{ http.ResponseWriter }

func (f flushing) Write(data []byte) (int, error) {
	n, err := f.ResponseWriter.Write(data)
	flush(f.ResponseWriter)
	return n, err
}

func flush(w http.ResponseWriter) {
	if flusher, ok := w.(http.Flusher); ok {
		flusher.Flush()
	}
}

func sleep(ctx context.Context, duration time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(duration):
	}
}
