package nodeload

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/kwok-dra/kwok-dra/internal/observe"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/internal/testing/apitest"
	"github.com/kwok-dra/kwok-dra/internal/testing/runtest"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// world is a Controller at work in a bubble. Its caches are filled by a fake API server, its own requests answered by world.
type world struct {
	*apitest.Server
	*Metrics
	t          *testing.T
	minor      string
	controller *Controller
	stop       func()

	mu sync.Mutex
	// requests are those that were sent, in words, since the last call of sent.
	requests []string
	headers  []http.Header
	// answer returns the status code and the object for a request, or 0 for what is usual.
	answer func(method, path string) (int, runtime.Object)
	// watched counts the open watches by their query.
	watched map[string]int
}

func newWorld(t *testing.T, objects ...runtime.Object) *world {
	t.Helper()
	w := &world{t: t, Server: apitest.New(objects...), Metrics: NewMetrics(), minor: "36", watched: map[string]int{}}
	w.answer = func(string, string) (int, runtime.Object) { return 0, nil }
	return w
}

func (w *world) start() {
	w.t.Helper()
	managed := &lifecycle.ManagedNodes{}
	require.NoError(w.t, managed.Complete())
	caches := observe.New(w.Server, managed)
	w.controller = New(Options{Client: w.Server, Caches: caches, Metrics: w.Metrics})
	config := &rest.Config{Host: "http://api-server", Transport: w}
	w.stop = runtest.InOrder(runtest.QuietContext(w.t), w.t, caches.Run, func(ctx context.Context) {
		if err := w.controller.Run(ctx, config, 1); err != nil && ctx.Err() == nil {
			w.t.Error(err)
		}
	})
	w.settle()
}

func (w *world) settle() {
	time.Sleep(2 * time.Second)
	synctest.Wait()
}

// sent returns the requests since the last call, sorted, but no watches.
func (w *world) sent() []string {
	w.settle()
	w.mu.Lock()
	defer w.mu.Unlock()
	sent := w.requests
	w.requests = nil
	slices.Sort(sent)
	return sent
}

// change changes what answer depends on.
func (w *world) change(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// RoundTrip implements http.RoundTripper.
func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/version" {
		return respond(http.StatusOK, io.NopCloser(strings.NewReader(`{"gitVersion":"v1.`+w.minor+`.3","gitCommit":"0123456789","minor":"`+w.minor+`"}`))), nil
	}
	who := strings.TrimPrefix(r.Header.Get("Impersonate-User"), "system:")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.headers = append(w.headers, r.Header)
	if r.URL.Query().Has("watch") {
		of := who + " " + r.URL.Path + "?" + r.URL.Query().Get("fieldSelector")
		w.watched[of]++
		body, server := io.Pipe()
		context.AfterFunc(r.Context(), func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.watched[of]--
			_ = server.CloseWithError(r.Context().Err())
		})
		return respond(http.StatusOK, body), nil
	}
	w.requests = append(w.requests, who+" "+r.Method+" "+r.URL.Path)
	code, object := w.answer(r.Method, r.URL.Path)
	if code == 0 {
		code = http.StatusOK
	}
	if object == nil {
		return respond(code, http.NoBody), nil
	}
	return respond(code, io.NopCloser(strings.NewReader(string(encodeObject(object))))), nil
}

func respond(code int, body io.ReadCloser) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{}, Body: body}
}

func (w *world) openWatches() (open []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for of, count := range w.watched {
		for range count {
			open = append(open, of)
		}
	}
	slices.Sort(open)
	return open
}

func newNode() *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-0", UID: "node-uid", Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}}}
}

func newPublished() *resourcev1.ResourceSlice {
	return &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "slice", Labels: map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedByValue}},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: "gpu.example.com", NodeName: new("node-0"), Pool: resourcev1.ResourcePool{Name: "node-0", ResourceSliceCount: 1},
			Devices: []resourcev1.Device{{Name: "gpu-0"}},
		},
	}
}

func newAllocated() *resourcev1.ResourceClaim {
	claim := &resourcev1.ResourceClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "resource.k8s.io/v1", Kind: "ResourceClaim"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "gpus", UID: "claim-uid"},
	}
	claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
		{Request: "r", Driver: "gpu.example.com", Pool: "node-0", Device: "gpu-0"},
	}}}
	return claim
}

// ofKwok answers for a node whose Lease kwok renews.
func ofKwok(method, path string) (int, runtime.Object) {
	switch {
	case strings.HasSuffix(path, "/leases/node-0"):
		return http.StatusOK, &coordinationv1.Lease{
			TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: new("kwok")},
		}
	case strings.Contains(path, "/resourceclaims/"):
		return http.StatusOK, newAllocated()
	case method == http.MethodGet && strings.Contains(path, "/csinodes/"):
		return http.StatusNotFound, nil
	}
	return 0, nil
}

var kubeletOfNode = []string{
	"node:node-0 /api/v1/nodes?metadata.name=node-0", "node:node-0 /api/v1/pods?spec.nodeName=node-0", "node:node-0 /api/v1/services?spec.clusterIP!=None",
	"node:node-0 /apis/node.k8s.io/v1/runtimeclasses?", "node:node-0 /apis/storage.k8s.io/v1/csidrivers?",
}

const (
	sliceWatch     = "serviceaccount:kwok-dra-drivers:gpu.example.com /apis/resource.k8s.io/v1/resourceslices?spec.driver=gpu.example.com,spec.nodeName=node-0"
	configMapWatch = "node:node-0 /api/v1/namespaces/default/configmaps?metadata.name=kube-root-ca.crt"
)

// TestNodeStarts with the watches of its kubelet and of each driver that has slices, and what these send at their start.
func TestNodeStarts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newNode(), newPublished())
		w.answer = ofKwok
		w.start()
		require.Equal(t, append(slices.Clone(kubeletOfNode), sliceWatch), w.openWatches())
		require.Equal(t, []string{
			"node:node-0 DELETE /apis/resource.k8s.io/v1/resourceslices",
			"node:node-0 GET /api/v1/nodes/node-0", "node:node-0 GET /api/v1/nodes/node-0",
			"node:node-0 GET /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-0",
			"node:node-0 GET /apis/storage.k8s.io/v1/csinodes/node-0", "node:node-0 GET /apis/storage.k8s.io/v1/csinodes/node-0",
			"node:node-0 POST /api/v1/namespaces/default/events", "node:node-0 POST /api/v1/namespaces/default/events",
			"node:node-0 POST /api/v1/namespaces/default/events", "node:node-0 POST /api/v1/namespaces/default/events",
			"node:node-0 POST /apis/storage.k8s.io/v1/csinodes",
			"serviceaccount:kwok-dra-drivers:gpu.example.com GET /api/v1/nodes/node-0",
		}, w.sent())
		require.InDelta(t, 5, testutil.CollectAndCount(w.watches)-1, 0)

		require.NoError(t, w.ResourceV1().ResourceSlices().Delete(t.Context(), "slice", metav1.DeleteOptions{}))
		w.settle()
		require.Equal(t, kubeletOfNode, w.openWatches(), "the driver is gone")
		require.NoError(t, w.CoreV1().Nodes().Delete(t.Context(), "node-0", metav1.DeleteOptions{}))
		w.settle()
		require.Empty(t, w.openWatches())
		require.Empty(t, w.sent())
	})
}

// TestRequestsHaveIdentities of a node in protobuf, and of a driver in JSON with a token for its node.
func TestRequestsHaveIdentities(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newNode(), newPublished())
		w.start()
		drivers := 0
		for _, header := range w.headers {
			if user := header.Get("Impersonate-User"); user != "system:node:node-0" {
				require.Equal(t, "system:serviceaccount:kwok-dra-drivers:gpu.example.com", user)
				require.Equal(t, []string{"node-0"}, map[string][]string(header)[transport.ImpersonateUserExtraHeaderPrefix+"authentication.kubernetes.io%2Fnode-name"])
				require.Empty(t, header["Impersonate-Group"], "the API server adds those of ServiceAccounts")
				require.Equal(t, "gpu.example.com/v0.0.0 (linux/amd64) kubernetes/$Format", header.Get("User-Agent"))
				require.Equal(t, "application/json, */*", header.Get("Accept"))
				drivers++
				continue
			}
			require.Equal(t, "system:nodes", header.Get("Impersonate-Group"))
			require.Equal(t, "kubelet/v1.36.3 (linux/amd64) kubernetes/0123456", header.Get("User-Agent"))
			require.Equal(t, "application/vnd.kubernetes.protobuf,application/json", header.Get("Accept"))
		}
		require.Equal(t, 2, drivers)
		require.Greater(t, len(w.headers), 10)
	})
}

// TestOlderKubeletsList before they watch.
func TestOlderKubeletsList(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newNode())
		w.minor = "34"
		w.answer = func(method, path string) (int, runtime.Object) {
			if method == http.MethodGet && strings.HasSuffix(path, "s") {
				return http.StatusOK, &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: "12"}}
			}
			return ofKwok(method, path)
		}
		w.start()
		require.Equal(t, kubeletOfNode, w.openWatches())
		lists := slices.DeleteFunc(w.sent(), func(sent string) bool { return !strings.HasSuffix(sent, "s") || !strings.Contains(sent, "GET") })
		require.Equal(t, []string{
			"node:node-0 GET /api/v1/nodes", "node:node-0 GET /api/v1/pods", "node:node-0 GET /api/v1/services",
			"node:node-0 GET /apis/node.k8s.io/v1/runtimeclasses", "node:node-0 GET /apis/storage.k8s.io/v1/csidrivers",
		}, lists)
	})
}

// TestPodsAreSent reads each claim of a Pod once for the kubelet and once for its driver, and one that is prepared for another
// Pod for the kubelet only. A ConfigMap is watched while a Pod mounts it.
func TestPodsAreSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newNode(), newPublished())
		w.answer = ofKwok
		w.start()
		w.sent()
		const readClaim = "GET /apis/resource.k8s.io/v1/namespaces/default/resourceclaims/gpus"
		for i, want := range [][]string{
			{"node:node-0 " + readClaim, "serviceaccount:kwok-dra-drivers:gpu.example.com " + readClaim}, {"node:node-0 " + readClaim},
		} {
			pod := newPod()
			pod.Name, pod.UID = fmt.Sprint("pod-", i), types.UID(fmt.Sprint(i))
			w.Add(pod)
			require.Equal(t, append([]string{
				"node:node-0 GET /api/v1/namespaces/default/pods/" + pod.Name, want[0], "node:node-0 POST /api/v1/namespaces/default/serviceaccounts/default/token",
			}, want[1:]...), w.sent())
			require.Contains(t, w.openWatches(), configMapWatch)
		}
		require.Len(t, w.openWatches(), 7, "one for both Pods")
		for i := range 2 {
			require.NoError(t, w.CoreV1().Pods("default").Delete(t.Context(), fmt.Sprint("pod-", i), metav1.DeleteOptions{}))
		}
		w.settle()
		require.NotContains(t, w.openWatches(), configMapWatch)
	})
}

// TestRequestsBeforeTheBindingIsKnown are refused by the node authorizer, and sent again: a kubelet starts no Pod without them.
// When the Pod is gone, they end.
func TestRequestsBeforeTheBindingIsKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newNode(), newPublished())
		knownFrom := time.Now().Add(time.Hour)
		w.answer = func(method, path string) (int, runtime.Object) {
			if isNeeded := strings.Contains(path, "/resourceclaims/") || strings.HasSuffix(path, "/token"); isNeeded && time.Now().Before(knownFrom) {
				return http.StatusForbidden, &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Message: "no relationship found between node 'node-0' and this object"}
			}
			return ofKwok(method, path)
		}
		w.start()
		w.sent()
		const kubelet, driver = "node:node-0 ", "serviceaccount:kwok-dra-drivers:gpu.example.com "
		const readClaim, getToken = "GET /apis/resource.k8s.io/v1/namespaces/default/resourceclaims/gpus", "POST /api/v1/namespaces/default/serviceaccounts/default/token"
		add := func(name string) {
			pod := newPod()
			pod.Name, pod.UID = name, types.UID(name)
			w.Add(pod)
		}
		add("one")
		time.Sleep(3 * time.Second)
		refused := w.sent()
		require.Contains(t, refused, kubelet+readClaim)
		require.Contains(t, refused, kubelet+getToken)
		require.NotContains(t, refused, driver+readClaim, "the kubelet has not read the claim")
		w.change(func() { knownFrom = time.Now() })
		require.Equal(t, []string{kubelet + readClaim, kubelet + getToken, driver + readClaim}, w.sent())
		require.Empty(t, w.sent())

		w.change(func() { knownFrom = time.Now().Add(time.Hour) })
		add("two")
		require.Contains(t, w.sent(), kubelet+readClaim)
		require.NoError(t, w.CoreV1().Pods("default").Delete(t.Context(), "two", metav1.DeleteOptions{}))
		w.sent()
		require.Empty(t, w.sent())
	})
}

// TestPodsBeforeTheStart are those of a kubelet that starts again: they run, and only their tokens and watches are missing.
func TestPodsBeforeTheStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pod := newPod()
		pod.Status.Phase = corev1.PodRunning
		w := newWorld(t, newNode(), pod)
		w.answer = ofKwok
		w.start()
		sent := w.sent()
		require.Contains(t, sent, "node:node-0 POST /api/v1/namespaces/default/serviceaccounts/default/token")
		require.NotContains(t, sent, "node:node-0 GET /api/v1/namespaces/default/pods/a")
		require.Contains(t, w.openWatches(), configMapWatch)
	})
}

// TestStatesAreOutOfDate at the start of a node, whose list of Pods may be older than the events that came meanwhile. A Pod that
// has ended needs no watches, and one that is gone nothing.
func TestStatesAreOutOfDate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newNode(), newPublished(), newPod())
		w.answer = ofKwok
		w.start()
		w.sent()
		require.Contains(t, w.openWatches(), configMapWatch)
		n, listed := w.controller.nodes["node-0"], w.controller.pods.Get("default/a")

		apitest.Edit(w.Server, "default", "a", func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded })
		w.sent()
		n.podChanged(listed)
		require.Empty(t, w.sent())
		require.NotContains(t, w.openWatches(), configMapWatch)

		w.Remove(newPod())
		w.sent()
		n.podChanged(listed)
		require.Empty(t, w.sent())
		require.NotContains(t, w.openWatches(), configMapWatch)
		require.Empty(t, n.pods)
	})
}

// TestLease leaves the Lease of a node to kwok. Without kwok's it makes one without a holder, and renews it every ten seconds
// until kwok takes it.
func TestLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newNode())
		isOfKwok := false
		w.answer = func(method, path string) (int, runtime.Object) {
			if !strings.Contains(path, "/leases") || isOfKwok && method == http.MethodGet {
				return ofKwok(method, path)
			}
			switch {
			case method == http.MethodGet:
				return http.StatusNotFound, nil
			case isOfKwok:
				return http.StatusConflict, nil
			}
			return http.StatusCreated, &coordinationv1.Lease{TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}, ObjectMeta: metav1.ObjectMeta{ResourceVersion: "5"}}
		}
		w.start()
		const leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
		sentAfter := func(wait time.Duration) []string {
			time.Sleep(wait)
			return slices.DeleteFunc(w.sent(), func(sent string) bool { return !strings.Contains(sent, leases) })
		}
		get, create, update := "node:node-0 GET "+leases+"/node-0", "node:node-0 POST "+leases, "node:node-0 PUT "+leases+"/node-0"
		require.Equal(t, []string{get, get, get, get}, sentAfter(31*time.Second))
		require.Equal(t, []string{create, update}, sorted(sentAfter(18*time.Second)))
		w.change(func() { isOfKwok = true })
		require.Equal(t, []string{get, update}, sentAfter(18*time.Second))
		require.Empty(t, sentAfter(time.Minute))
	})
}

func sorted(all []string) []string {
	slices.Sort(all)
	return all
}

// TestHeartbeats are written every five minutes where kwok renews the Lease: kwok writes them more often otherwise.
func TestHeartbeats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		node := newNode()
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		w := newWorld(t, node)
		w.answer = ofKwok
		w.start()
		const patch = "node:node-0 PATCH /api/v1/nodes/node-0/status"
		require.Contains(t, w.sent(), patch)
		time.Sleep(2*heartbeatInterval + time.Minute)
		require.Equal(t, []string{patch, patch}, w.sent())
	})
}

// TestBusyServerIsAskedAgain after the time that it asks for, as client-go does.
func TestBusyServerIsAskedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		busy := roundTripper(func(*http.Request) (*http.Response, error) {
			tries++
			if tries < 3 {
				response := respond(http.StatusTooManyRequests, http.NoBody)
				response.Header.Set("Retry-After", "5")
				return response, nil
			}
			return respond(http.StatusOK, http.NoBody), nil
		})
		began := time.Now()
		c := newTestClient(t, busy)
		require.Equal(t, http.StatusOK, c.send(t.Context(), time.Now(), getNode("node-0")).code)
		require.Equal(t, 10*time.Second, time.Since(began))
		require.InDelta(t, 0, testutil.ToFloat64(c.metrics.late.WithLabelValues(kubeletComponent)), 0, "that is the API server's time")
	})
}

// TestRateOfKubelet is 50 requests a second after the first 100, and waiting for it is not lag.
func TestRateOfKubelet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newTestClient(t, func(*http.Request) (*http.Response, error) { return respond(http.StatusOK, http.NoBody), nil })
		began := time.Now()
		for range 200 {
			c.send(t.Context(), time.Now(), getNode("node-0"))
		}
		require.InDelta(t, 2, time.Since(began).Seconds(), 0.05)
		require.Less(t, testutil.ToFloat64(c.metrics.lag.WithLabelValues(kubeletComponent)), 0.05)
	})
}

// TestLateRequestsAreReported: what is sent more than a second after it was due is no load of real nodes.
func TestLateRequestsAreReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newTestClient(t, func(*http.Request) (*http.Response, error) { return respond(http.StatusOK, http.NoBody), nil })
		c.send(t.Context(), time.Now().Add(-900*time.Millisecond), getNode("node-0"))
		require.InDelta(t, 0, testutil.ToFloat64(c.metrics.late.WithLabelValues(kubeletComponent)), 0)
		c.send(t.Context(), time.Now().Add(-3*time.Second), getNode("node-0"))
		require.InDelta(t, 1, testutil.ToFloat64(c.metrics.late.WithLabelValues(kubeletComponent)), 0)
		time.Sleep(70 * time.Second)
		c.send(t.Context(), time.Now(), getNode("node-0"))
		require.InDelta(t, 3, testutil.ToFloat64(c.metrics.lag.WithLabelValues(kubeletComponent)), 0.01, "of the minute before")
		time.Sleep(3 * time.Minute)
		c.send(t.Context(), time.Now(), getNode("node-0"))
		require.InDelta(t, 0, testutil.ToFloat64(c.metrics.lag.WithLabelValues(kubeletComponent)), 0.01)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

func newTestClient(t *testing.T, transport roundTripper) *client {
	t.Helper()
	s, err := newSender(&rest.Config{Host: "http://api-server", Transport: transport}, NewMetrics())
	require.NoError(t, err)
	return s.newClient(kubeletOf("node-0", serverVersion{text: "v1.36.3"}))
}
