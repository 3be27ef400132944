package e2e

import (
	"context"
	"encoding/json"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// probePause is between two writes of a probe, so few that they slow nobody.
const probePause = 50 * time.Millisecond

// probe measures, until stop is called, how long it takes from a write until the
// event of it has come back: what the API costs everyone meanwhile.
func (w *world) probe(namespace string) (stop func() []time.Duration) {
	w.Helper()
	const name = "probe"
	configMaps := w.client.CoreV1().ConfigMaps(namespace)
	_, err := configMaps.Create(w.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(w, err)
	events, err := configMaps.Watch(w.Context(), metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()})
	require.NoError(w, err)

	ctx, cancel := context.WithCancel(w.Context())
	measured := make(chan []time.Duration, 1)
	go func() {
		defer events.Stop()
		var all []time.Duration
		for ctx.Err() == nil {
			written := time.Now()
			patch, _ := json.Marshal(map[string]any{"data": map[string]string{"written": written.Format(time.RFC3339Nano)}})
			object, err := configMaps.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
			if err == nil && seen(ctx, events, object.Data["written"]) {
				all = append(all, time.Since(written))
			}
			wait(ctx, probePause)
		}
		measured <- all
	}()
	return func() []time.Duration {
		cancel()
		return <-measured
	}
}

// seen waits for the event of a write.
func seen(ctx context.Context, events watch.Interface, written string) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case event, open := <-events.ResultChan():
			if !open {
				return false
			}
			if object, ok := event.Object.(*corev1.ConfigMap); ok && object.Data["written"] == written {
				return true
			}
		}
	}
}
