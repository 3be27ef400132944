package app

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	kubetesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/controller/loop"
	"github.com/kwok-dra/kwok-dra/internal/extensions/access"
	"github.com/kwok-dra/kwok-dra/internal/testing/runtest"
	"github.com/kwok-dra/kwok-dra/internal/util/version"
)

// quiet is the context of a test.
var quiet = runtest.QuietContext

// checker is a cache that syncs when its channel is closed.
type checker struct {
	name string
	done chan struct{}
}

func (c checker) Name() string          { return c.name }
func (c checker) Done() <-chan struct{} { return c.done }

// serving runs a server on a free port and returns a function that gets a path.
func serving(t *testing.T, checkers ...cache.DoneChecker) func(path string) (int, string) {
	t.Helper()
	return servingSite(t, &site{synced: checkers}, nil)
}

func servingSite(t *testing.T, site *site, devices http.Handler) func(path string) (int, string) {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "a_gauge", Help: "A gauge."}))
	ctx, cancel := context.WithCancel(quiet(t))
	thePage := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "the page at "+r.URL.Path) })
	site.registry, site.routes = registry, map[string]http.Handler{"/": thePage}
	if devices != nil {
		site.routes[MetricsRoutes] = devices
	}
	s, err := startServer(ctx, "127.0.0.1:0", site.newHandler(), nil)
	require.NoError(t, err)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.runServer(ctx)
	}()
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		cancel()
		<-stopped
	})
	return func(path string) (int, string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.listener.Addr().String()+path, nil)
		require.NoError(t, err)
		response, err := client.Do(request)
		require.NoError(t, err)
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, string(body)
	}
}

func requireAnswer(t *testing.T, get func(string) (int, string), path string, status int, body string) {
	t.Helper()
	gotStatus, gotBody := get(path)
	require.Equal(t, status, gotStatus, path)
	require.Contains(t, gotBody, body, path)
}

func TestHealth(t *testing.T) {
	t.Parallel()
	var stuck error
	checks := []func() error{func() error { return nil }, func() error { return stuck }}
	answer := func() (int, string) {
		recorder := httptest.NewRecorder()
		(&site{checks: checks, routes: map[string]http.Handler{"/": http.NotFoundHandler()}}).newHandler().ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/healthz", nil))
		return recorder.Code, recorder.Body.String()
	}
	code, body := answer()
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "ok\n", body)
	stuck = errors.New("loop pods is stuck")
	code, body = answer()
	require.Equal(t, http.StatusInternalServerError, code)
	require.Equal(t, "loop pods is stuck\n", body)
}

func TestServer(t *testing.T) {
	t.Parallel()
	nodes, slices := checker{"nodes", make(chan struct{})}, checker{"slices", make(chan struct{})}
	get := serving(t, nodes, slices)
	requireAnswer(t, get, "/healthz", http.StatusOK, "ok")
	requireAnswer(t, get, "/readyz", http.StatusServiceUnavailable, "waiting for the cache of nodes")
	close(nodes.done)
	requireAnswer(t, get, "/readyz", http.StatusServiceUnavailable, "waiting for the cache of slices")
	close(slices.done)
	requireAnswer(t, get, "/readyz", http.StatusOK, "ok")
	requireAnswer(t, get, "/metrics", http.StatusOK, "a_gauge 0")
	requireAnswer(t, get, "/version", http.StatusOK, `"gitVersion":"`+version.Get()+`"`)
	requireAnswer(t, get, "/", http.StatusOK, "the page at /")
	requireAnswer(t, get, "/api/devices", http.StatusOK, "the page at /api/devices")
}

// TestSecureServing asks over TLS for all that there is: health is for all, the
// rest for those whom the API server lets read.
func TestSecureServing(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset()
	client.PrependReactor("create", "tokenreviews", func(action kubetesting.Action) (bool, runtime.Object, error) {
		review := action.(kubetesting.CreateAction).GetObject().(*authenticationv1.TokenReview)
		review.Status.Authenticated = review.Spec.Token == "good"
		return true, review, nil
	})
	client.PrependReactor("create", "subjectaccessreviews", func(action kubetesting.Action) (bool, runtime.Object, error) {
		review := action.(kubetesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
		review.Status.Allowed = review.Spec.NonResourceAttributes.Path != "/forbidden"
		return true, review, nil
	})
	secure, err := new(access.Certificate).TLS()
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(quiet(t))
	thePage := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "the page at "+r.URL.Path) })
	s, err := startServer(ctx, "127.0.0.1:0", (&site{registry: prometheus.NewRegistry(), routes: map[string]http.Handler{"/": thePage}, guard: access.NewGuard(client).Wrap, profiling: true}).newHandler(), secure)
	require.NoError(t, err)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.runServer(ctx)
	}()
	browser := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} // signed by nobody
	defer func() {
		browser.CloseIdleConnections()
		cancel()
		<-stopped
	}()
	for _, test := range []struct {
		path, token string
		want        int
	}{
		{"/healthz", "", 200},
		{"/readyz", "", 200},
		{"/metrics", "", 401},
		{"/", "", 401},
		{"/api/devices", "bad", 401},
		{"/debug/pprof/", "", 401},
		{"/metrics", "good", 200},
		{"/", "good", 200},
		{"/debug/pprof/", "good", 200},
		{"/forbidden", "good", 403},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+s.listener.Addr().String()+test.path, http.NoBody)
		require.NoError(t, err)
		request.Header.Set("Authorization", "Bearer "+test.token)
		response, err := browser.Do(request)
		require.NoError(t, err)
		require.Equal(t, test.want, response.StatusCode, "%s %s", test.path, test.token)
		require.Equal(t, 2, response.ProtoMajor)
		require.NoError(t, response.Body.Close())
	}
}

// TestServerEndsRequestsThatWait: a request that would wait for ever ends with the server.
func TestServerEndsRequestsThatWait(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(quiet(t))
	entered := make(chan struct{})
	s, err := startServer(ctx, "127.0.0.1:0", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
	}), nil)
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.listener.Addr().String(), nil)
	require.NoError(t, err)
	answered := make(chan error)
	go func() {
		response, err := client.Do(request)
		if err == nil {
			err = response.Body.Close()
		}
		answered <- err
	}()
	go func() {
		<-entered
		cancel()
	}()
	s.runServer(ctx)
	require.NoError(t, <-answered)
}

func TestServerWithoutAnAddress(t *testing.T) {
	t.Parallel()
	s, err := startServer(quiet(t), "", http.NotFoundHandler(), nil)
	require.NoError(t, err)
	require.Nil(t, s)
	s.runServer(t.Context())
}

func TestServerOnAPortThatIsTaken(t *testing.T) {
	t.Parallel()
	var listen net.ListenConfig
	listener, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	_, err = startServer(quiet(t), listener.Addr().String(), http.NotFoundHandler(), nil)
	require.ErrorContains(t, err, "listen on --server-address: ")
}

// TestClientMetrics: dashboards and alerts need these names, which all components
// of Kubernetes have.
func TestClientMetrics(t *testing.T) {
	t.Parallel()
	get := serving(t)
	ended, end := context.WithCancel(t.Context())
	end()
	loop.New("a-queue", func(context.Context, string) error { return nil }).Run(ended, 1)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://127.0.0.1:1"}) // nothing listens there
	require.NoError(t, err)
	_, err = client.Discovery().ServerVersionWithContext(t.Context())
	require.Error(t, err)
	_, body := get("/metrics")
	for _, line := range []string{
		`workqueue_depth{name="a-queue"} 0`, `workqueue_adds_total{name="a-queue"} 0`, `workqueue_retries_total{name="a-queue"} 0`,
		`workqueue_work_duration_seconds_count{name="a-queue"} 0`,
		`rest_client_requests_total{code="<error>",host="127.0.0.1:1",method="GET"} `,
		"go_goroutines ", "go_memstats_heap_inuse_bytes ", "process_cpu_seconds_total ", "process_resident_memory_bytes ", "process_start_time_seconds ",
	} {
		require.Contains(t, body, "\n"+line)
	}
}

// TestSidecar runs the core, without any extension, on a fake cluster: files and ConfigMap make one
// set, and the end leaves nothing behind.
func TestSidecar(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const document = "apiVersion: dra.kwok.x-k8s.io/v1alpha1\nkind: ResourcePoolTemplate\nmetadata: {name: NAME}\nspec: {driver: NAME, devices: [{name: gpu}]}\n"
		client := fake.NewClientset(
			&corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}},
				Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
			},
			&corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kwok-dra"},
				Data:       map[string]string{"a": strings.ReplaceAll(document, "NAME", "of-the-map")},
			},
		)
		o := parsed(t, "--config-map kube-system/kwok-dra --server-address= --leader-elect-resource-namespace kube-system")
		require.NoError(t, o.Complete())
		store, err := newStore(t.Context(), o)
		require.NoError(t, err)
		documents, err := config.Decode("file", []byte(strings.ReplaceAll(document, "NAME", "of-the-file")))
		require.NoError(t, err)
		require.NoError(t, store.Replace(config.FilesCarrier, documents))
		events := record.NewBroadcaster()
		defer events.Shutdown()
		owner, err := newOwner(o, nil)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(quiet(t))
		s := newSidecar(o, client, nil, store, owner, events)

		ended := make(chan error)
		go func() { ended <- s.runParts(ctx) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		published, err := client.ResourceV1().ResourceSlices().List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.Len(t, published.Items, 2)
		cancel()
		require.NoError(t, <-ended)
	})
}

func TestNewStoreRefusesABadFile(t *testing.T) {
	t.Parallel()
	_, err := newStore(t.Context(), &Options{Config: []string{"/does/not/exist.yaml"}})
	require.ErrorContains(t, err, "read configuration: open /does/not/exist.yaml")
}

func TestRunWithoutACluster(t *testing.T) {
	t.Parallel()
	o := parsed(t, "--config /dev/null --kubeconfig /does/not/exist")
	require.NoError(t, o.Complete())
	require.ErrorContains(t, Run(quiet(t), o), "find the API server")
}

// TestRunWithoutAFile: the configuration is checked first, also where there is
// no cluster.
func TestRunWithoutAFile(t *testing.T) {
	t.Parallel()
	o := parsed(t, "--config /does/not/exist.yaml --kubeconfig /does/not/exist")
	require.NoError(t, o.Complete())
	require.ErrorContains(t, Run(quiet(t), o), "open /does/not/exist.yaml")
}

// TestMetricsOfDevices are served where they are on, and not found where they are off.
func TestMetricsOfDevices(t *testing.T) {
	t.Parallel()
	devices := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "devices at "+r.URL.Path) })
	for _, path := range []string{"/metrics/devices", "/metrics/nodes/n/devices"} {
		code, body := servingSite(t, &site{}, devices)(path)
		require.Equal(t, http.StatusOK, code)
		require.Equal(t, "devices at "+path, body)
		code, body = serving(t)(path)
		require.Equal(t, http.StatusNotFound, code)
		require.NotContains(t, body, "the page")
	}
	code, body := servingSite(t, &site{}, devices)("/metrics")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, "a_gauge")
}
