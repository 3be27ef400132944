package e2e

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kwok-dra/kwok-dra/test/cluster"
)

// proxy stands between the sidecar and the API server, and answers for it.
type proxy struct {
	forward http.Handler
	fault   atomic.Pointer[http.HandlerFunc]
	faults  atomic.Int64
}

// ServeHTTP implements http.Handler.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if fault := p.fault.Load(); fault != nil && r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "/events") {
		p.faults.Add(1)
		(*fault)(w, r)
		return
	}
	p.forward.ServeHTTP(w, r)
}

// answer is a fault with a status as the API server writes it.
func answer(code int, reason metav1.StatusReason) http.HandlerFunc {
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

// hangUp is no answer at all.
func hangUp(w http.ResponseWriter, _ *http.Request) {
	connection, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = connection.Close()
	}
}

// newProxy returns a proxy to the cluster, and the sidecar's kubeconfig with it.
func (h *harness) newProxy() (*proxy, string) {
	h.Helper()
	config, err := clientcmd.LoadFromFile(h.kubeconfig)
	require.NoError(h, err)
	admin, err := clientcmd.BuildConfigFromFlags("", h.cluster.Kubeconfig())
	require.NoError(h, err)
	target, err := url.Parse(admin.Host)
	require.NoError(h, err)
	transport, err := rest.TransportFor(&rest.Config{Host: admin.Host, TLSClientConfig: rest.TLSClientConfig{CAData: admin.CAData, CAFile: admin.CAFile}})
	require.NoError(h, err)
	forward := httputil.NewSingleHostReverseProxy(target)
	forward.Transport, forward.FlushInterval = transport, -1
	p := &proxy{forward: forward}
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

// TestPrepareFaults has the API server refuse every write for a while, in each
// way, and for ten seconds not answer at all.
func TestPrepareFaults(t *testing.T) {
	t.Parallel()
	h := newHarness(t, cluster.Options{Config: fastStages(t), Audit: true})
	proxy, kubeconfig := h.newProxy()
	h.kubeconfig = kubeconfig
	h.sidecar()
	h.sceneOf("faults", driver, gpus(64), "")
	for _, fault := range []struct {
		name     string
		handler  http.HandlerFunc
		duration time.Duration
	}{
		{"conflict", answer(http.StatusConflict, metav1.StatusReasonConflict), 3 * time.Second},
		{"invalid", answer(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid), 3 * time.Second},
		{"too-many", answer(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests), 3 * time.Second},
		{"internal", answer(http.StatusInternalServerError, metav1.StatusReasonInternalError), 3 * time.Second},
		{"silence", hangUp, 10 * time.Second},
	} {
		h.faulty(proxy, fault.name, fault.handler, fault.duration)
	}
}

// faulty has Pods come while the fault is on, and sees them run when it is over.
func (h *harness) faulty(proxy *proxy, name string, fault http.HandlerFunc, duration time.Duration) {
	h.Helper()
	const pods = 10
	before := proxy.faults.Load()
	proxy.fault.Store(&fault)
	podName := func(i int) string { return fmt.Sprintf("%s-%d", name, i) }
	for i := range pods {
		h.createPod("faults", newPod(podName(i), "faults", fromTemplate))
	}
	wait(h.Context(), duration)
	for i := range pods {
		require.False(h, isReady(h.pod("faults", podName(i))))
	}
	proxy.fault.Store(nil)
	refused := proxy.faults.Load() - before
	require.GreaterOrEqual(h, refused, int64(pods), name)
	require.Less(h, refused, int64(pods*20), "%s: retries back off", name)
	for i := range pods {
		h.running("faults", podName(i))
		require.Len(h, h.claimOf("faults", podName(i)).Status.Devices, 1)
		list, err := h.client.CoreV1().Events("faults").List(h.Context(), metav1.ListOptions{
			FieldSelector: "involvedObject.name=" + podName(i) + ",reason=FailedPrepareDynamicResources",
		})
		require.NoError(h, err)
		require.LessOrEqual(h, len(list.Items), 1, "%s: one event per Pod and cause", name)
	}
}
