package app

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
)

// TestEventsOnce: what is said of a content is said once, also by another process.
func TestEventsOnce(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset()
	sink := &eventSink{ctx: t.Context(), events: client.CoreV1().Events("")}
	say := func(name, reason, message string) error {
		_, err := sink.Create(&corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: "karpenter", Name: name},
			InvolvedObject: corev1.ObjectReference{Kind: "ConfigMap", Namespace: "karpenter", Name: "c", UID: "uid"},
			Reason:         reason,
			Message:        message,
		})
		return err
	}
	require.NoError(t, say("c.1", "Normalized", "a-b is a_b"))
	require.True(t, apierrors.IsAlreadyExists(say("c.2", "Normalized", "a-b is a_b")))
	require.NoError(t, say("c.3", "Normalized", "a/b is a.b"))
	require.NoError(t, say("c.4", "InvalidConfiguration", "bad"))
	require.NoError(t, say("c.5", "InvalidConfiguration", "bad"))

	list, err := client.CoreV1().Events("karpenter").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 4)
	for i := range list.Items {
		event := &list.Items[i]
		_, err := sink.Patch(event, []byte(`{"count": 2}`))
		require.NoError(t, err)
		stored, err := client.CoreV1().Events("karpenter").Get(t.Context(), event.Name, metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, event.Reason == "InvalidConfiguration", stored.Count == 2, event.Reason)
	}
}

// TestEventsEnd: an event that the API server puts off does not outlive kwok-dra.
func TestEventsEnd(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
		asked <- struct{}{}
	}))
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	require.NoError(t, err)

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	sink := &eventSink{ctx: ctx, events: client.CoreV1().Events("")}
	event := corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "event"}}
	for _, write := range []func() error{
		func() error { _, err := sink.Create(event.DeepCopy()); return err },
		func() error { _, err := sink.Update(event.DeepCopy()); return err },
		func() error { _, err := sink.Patch(event.DeepCopy(), []byte(`{"count": 2}`)); return err },
	} {
		ended := make(chan error, 1)
		go func() { ended <- write() }()
		if ctx.Err() == nil {
			<-asked
			stop()
		}
		require.ErrorIs(t, <-ended, context.Canceled)
	}
}
