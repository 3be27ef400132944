package renewals

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	restwatch "k8s.io/client-go/rest/watch"

	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
)

// encode writes events as an API server does.
func encode(t testing.TB, mediaType string, events ...watch.Event) []byte {
	t.Helper()
	info, found := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), mediaType)
	require.True(t, found)
	var stream bytes.Buffer
	version := schema.GroupVersion{Version: "v1"}
	if _, is := events[0].Object.(*coordinationv1.Lease); is {
		version = coordinationv1.SchemeGroupVersion
	}
	frames := streaming.NewEncoder(info.StreamSerializer.NewFrameWriter(&stream), scheme.Codecs.EncoderForVersion(info.StreamSerializer.Serializer, schema.GroupVersion{Version: "v1"}))
	encoder := restwatch.NewEncoder(frames, scheme.Codecs.EncoderForVersion(info.Serializer, version))
	for i := range events {
		require.NoError(t, encoder.Encode(&events[i]))
	}
	return stream.Bytes()
}

func node(version string, change func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", ResourceVersion: version, Labels: map[string]string{"a": "1", "b": "2"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: version}}},
		Status: corev1.NodeStatus{
			Capacity: corev1.ResourceList{"cpu": resource.MustParse("8")},
			Conditions: []corev1.NodeCondition{
				{Type: "Ready", Status: "True", LastHeartbeatTime: metav1.Unix(1e9, 0), LastTransitionTime: metav1.Unix(1e9, 0)},
				{Type: "MemoryPressure", Status: "False", LastHeartbeatTime: metav1.Unix(1e9, 0)},
			},
		},
	}
	change(n)
	return n
}

func heartbeat(version string, second int64) *corev1.Node {
	return node(version, func(n *corev1.Node) {
		for i := range n.Status.Conditions {
			n.Status.Conditions[i].LastHeartbeatTime = metav1.Unix(1e9+second, 0)
		}
	})
}

func labelled(version, value string) *corev1.Node {
	return node(version, func(n *corev1.Node) { n.Labels["a"] = value })
}

func lease(version, holder string, second int64) *coordinationv1.Lease {
	renewed := metav1.NewMicroTime(metav1.Unix(1e9+second, 0).Time)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "n", Namespace: "kube-node-lease", UID: "u", ResourceVersion: version},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: new(int32(40)), RenewTime: &renewed},
	}
}

func another(version string) *corev1.Node {
	return node(version, func(n *corev1.Node) { n.Name, n.UID = "m", "u-2" })
}

// streams are events, and those of which a client is to be told.
var streams = map[string]struct {
	events []watch.Event
	want   []string
}{
	"heartbeats": {[]watch.Event{
		{Type: watch.Added, Object: heartbeat("1", 0)},
		{Type: watch.Modified, Object: heartbeat("2", 20)},
		{Type: watch.Modified, Object: heartbeat("3", 40)},
	}, []string{"ADDED 1"}},
	"a change between": {[]watch.Event{
		{Type: watch.Added, Object: heartbeat("1", 0)},
		{Type: watch.Modified, Object: labelled("2", "x")},
		{Type: watch.Modified, Object: labelled("3", "x")},
		{Type: watch.Modified, Object: heartbeat("4", 20)},
		{Type: watch.Modified, Object: heartbeat("5", 40)},
	}, []string{"ADDED 1", "MODIFIED 2", "MODIFIED 4"}},
	"a watch that begins later": {[]watch.Event{
		{Type: watch.Modified, Object: heartbeat("1", 0)},
		{Type: watch.Modified, Object: heartbeat("2", 20)},
	}, []string{"MODIFIED 1"}},
	"the node is made anew": {[]watch.Event{
		{Type: watch.Added, Object: heartbeat("1", 0)},
		{Type: watch.Deleted, Object: heartbeat("2", 0)},
		{Type: watch.Added, Object: heartbeat("3", 0)},
		{Type: watch.Modified, Object: heartbeat("4", 20)},
		{Type: watch.Deleted, Object: heartbeat("5", 20)},
	}, []string{"ADDED 1", "DELETED 2", "ADDED 3", "DELETED 5"}},
	"two nodes": {[]watch.Event{
		{Type: watch.Added, Object: heartbeat("1", 0)},
		{Type: watch.Added, Object: another("2")},
		{Type: watch.Modified, Object: heartbeat("3", 20)},
		{Type: watch.Modified, Object: another("4")},
		{Type: watch.Deleted, Object: another("5")},
		{Type: watch.Modified, Object: heartbeat("6", 40)},
	}, []string{"ADDED 1", "ADDED 2", "DELETED 5"}},
	"bookmarks": {[]watch.Event{
		{Type: watch.Bookmark, Object: &corev1.Node{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}}},
		{Type: watch.Bookmark, Object: &corev1.Node{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "2"}}},
	}, []string{"BOOKMARK 1", "BOOKMARK 2"}},
	"pods have no renewals": {[]watch.Event{
		{Type: watch.Added, Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: "1"}}},
		{Type: watch.Modified, Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: "2"}}},
	}, []string{"ADDED 1", "MODIFIED 2"}},
	"leases": {[]watch.Event{
		{Type: watch.Added, Object: lease("1", "a", 0)},
		{Type: watch.Modified, Object: lease("2", "a", 10)},
		{Type: watch.Modified, Object: lease("3", "b", 20)},
		{Type: watch.Modified, Object: lease("4", "b", 30)},
	}, []string{"ADDED 1", "MODIFIED 3"}},
}

// TestLeaveOut has a server send what it sends, to clients that take protobuf. One
// that takes JSON is told everything.
func TestLeaveOut(t *testing.T) {
	t.Parallel()
	for about, test := range streams {
		for _, mediaType := range []string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON} {
			client := clientOf(t, mediaType, encode(t, mediaType, test.events...))
			var (
				stream watch.Interface
				err    error
			)
			switch test.events[0].Object.(type) {
			case *coordinationv1.Lease:
				stream, err = client.CoordinationV1().Leases("").Watch(t.Context(), metav1.ListOptions{})
			case *corev1.Pod:
				stream, err = client.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{})
			default:
				stream, err = client.CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{})
			}
			require.NoError(t, err)
			var have []string
			for event := range stream.ResultChan() {
				object, err := meta.Accessor(event.Object)
				require.NoError(t, err, about)
				have = append(have, fmt.Sprint(event.Type, " ", object.GetResourceVersion()))
			}
			if mediaType == runtime.ContentTypeJSON {
				require.Len(t, have, len(test.events), about)
				continue
			}
			require.Equal(t, test.want, have, about)
		}
	}
}

// clientOf is a client of a server that answers all watches with the stream.
func clientOf(t *testing.T, mediaType string, stream []byte) kubernetes.Interface {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", mediaType+";stream=watch")
		_, _ = w.Write(stream)
	}))
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: mediaType}}
	plain, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	client, err := LeaveOut(plain, config)
	require.NoError(t, err)
	require.Equal(t, plain.AppsV1(), client.AppsV1())
	return client
}

// TestErrorsOfTheServer come through as ever.
func TestErrorsOfTheServer(t *testing.T) {
	t.Parallel()
	status := &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Message: "too old", Reason: metav1.StatusReasonExpired, Code: http.StatusGone}
	client := clientOf(t, runtime.ContentTypeProtobuf, encode(t, runtime.ContentTypeProtobuf, watch.Event{Type: watch.Error, Object: status}))
	stream, err := client.CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	event := <-stream.ResultChan()
	require.Equal(t, watch.Error, event.Type)
	require.Equal(t, "too old", event.Object.(*metav1.Status).Message)
}

// TestLeftOutIsWhatTheCacheDrops changes one thing after the other about a node:
// two that the cache of nodes takes for the same, and no others, are the same here.
func TestLeftOutIsWhatTheCacheDrops(t *testing.T) {
	t.Parallel()
	contentOf := func(n *corev1.Node) uint64 {
		frames := encode(t, runtime.ContentTypeProtobuf, watch.Event{Type: watch.Modified, Object: n})
		e, err := readEvent(frames[4:])
		require.NoError(t, err)
		require.Equal(t, "u", string(e.uid))
		content, err := e.content()
		require.NoError(t, err)
		return content
	}
	slim := func(n *corev1.Node) *corev1.Node {
		n = n.DeepCopy()
		lifecycle.Slim(n)
		n.ResourceVersion = ""
		return n
	}
	before := node("1", func(*corev1.Node) {})
	same := 0
	for about, change := range map[string]func(*corev1.Node){
		"nothing":          func(*corev1.Node) {},
		"version":          func(n *corev1.Node) { n.ResourceVersion = "2" },
		"heartbeat":        func(n *corev1.Node) { n.Status.Conditions[1].LastHeartbeatTime = metav1.Unix(2e9, 0) },
		"no heartbeat":     func(n *corev1.Node) { n.Status.Conditions[0].LastHeartbeatTime = metav1.Time{} },
		"managed":          func(n *corev1.Node) { n.ManagedFields = append(n.ManagedFields, n.ManagedFields...) },
		"transition":       func(n *corev1.Node) { n.Status.Conditions[1].LastTransitionTime = metav1.Unix(2e9, 0) },
		"status":           func(n *corev1.Node) { n.Status.Conditions[0].Status = "False" },
		"reason":           func(n *corev1.Node) { n.Status.Conditions[0].Reason = "Because" },
		"order":            func(n *corev1.Node) { c := n.Status.Conditions; c[0], c[1] = c[1], c[0] },
		"fewer conditions": func(n *corev1.Node) { n.Status.Conditions = n.Status.Conditions[:1] },
		"label":            func(n *corev1.Node) { n.Labels["b"] = "3" },
		"annotation":       func(n *corev1.Node) { n.Annotations = map[string]string{"a": ""} },
		"taint":            func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "k"}} },
		"unschedulable":    func(n *corev1.Node) { n.Spec.Unschedulable = true },
		"capacity":         func(n *corev1.Node) { n.Status.Capacity["cpu"] = resource.MustParse("9") },
		"address":          func(n *corev1.Node) { n.Status.Addresses = []corev1.NodeAddress{{Address: "a"}} },
		"deleted":          func(n *corev1.Node) { n.DeletionTimestamp = &metav1.Time{} },
	} {
		after := node("1", change)
		want := reflect.DeepEqual(slim(before), slim(after))
		require.Equal(t, want, contentOf(before) == contentOf(after), about)
		if want {
			same++
		}
	}
	require.Equal(t, 5, same)
}

// BenchmarkHeartbeat is what it takes to recognize a heartbeat.
func BenchmarkHeartbeat(b *testing.B) {
	frame := encode(b, runtime.ContentTypeProtobuf, watch.Event{Type: watch.Modified, Object: heartbeat("1", 0)})[4:]
	r := &frameReader{last: map[string]uint64{}}
	r.renewal(frame)
	b.ReportAllocs()
	for b.Loop() {
		if !r.renewal(frame) {
			b.Fatal("a heartbeat is taken for a change")
		}
	}
}
