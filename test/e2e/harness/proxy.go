package harness

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kwok-dra/kwok-dra/test/internal/admin"
)

// Proxy stands between the sidecar and the API server, and answers for it.
type Proxy struct {
	forward http.Handler
	// Fault answers each write but those of events, if there is one.
	Fault atomic.Pointer[http.HandlerFunc]
	// Faults counts what Fault has answered.
	Faults atomic.Int64
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if fault := p.Fault.Load(); fault != nil && r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "/events") {
		p.Faults.Add(1)
		(*fault)(w, r)
		return
	}
	p.forward.ServeHTTP(w, r)
}

// Answer is a fault with a status as the API server writes it.
func Answer(code int, reason metav1.StatusReason) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if code == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "1")
		}
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: "injected",
		})
	}
}

// LoseAnswers has so many writes pass. The later ones are done, too, but who made
// one waits for the answer until it ends. The function tells how many wait.
func (p *Proxy) LoseAnswers(after int64) (waiting func() int64) {
	var seen, lost atomic.Int64
	lose := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if seen.Add(1) <= after {
			p.forward.ServeHTTP(w, r)
			return
		}
		p.forward.ServeHTTP(httptest.NewRecorder(), r)
		lost.Add(1)
		<-r.Context().Done()
	})
	p.Fault.Store(&lose)
	return lost.Load
}

// HangUp is no answer at all.
func HangUp(w http.ResponseWriter, _ *http.Request) {
	connection, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = connection.Close()
	}
}

// NewProxy returns a proxy to the cluster, and the sidecar's kubeconfig with it.
func (h *H) NewProxy() (*Proxy, string) {
	h.Helper()
	config, err := clientcmd.LoadFromFile(h.Kubeconfig)
	require.NoError(h, err)
	administrator, err := admin.Config(h.Cluster.Kubeconfig())
	require.NoError(h, err)
	target, err := url.Parse(administrator.Host)
	require.NoError(h, err)
	transport, err := rest.TransportFor(&rest.Config{Host: administrator.Host, TLSClientConfig: rest.TLSClientConfig{CAData: administrator.CAData}})
	require.NoError(h, err)
	forward := httputil.NewSingleHostReverseProxy(target)
	forward.Transport, forward.FlushInterval = transport, -1
	p := &Proxy{forward: forward}
	server := httptest.NewTLSServer(p) // a client sends its token over TLS only
	h.Cleanup(server.Close)
	for _, cluster := range config.Clusters {
		cluster.Server = server.URL
		cluster.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	}
	path := filepath.Join(h.TempDir(), "kubeconfig.yaml")
	require.NoError(h, clientcmd.WriteToFile(*config, path))
	return p, path
}
