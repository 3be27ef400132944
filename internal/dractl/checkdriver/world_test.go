package checkdriver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// claimServer is an API server that has claims alone. A request that creates one is slow, and
// has begun when told.
type claimServer struct {
	begun func()
	mu    sync.Mutex
	names map[string]bool
}

func (s *claimServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	if r.Method == http.MethodPost {
		s.create(w, r)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method == http.MethodDelete {
		delete(s.names, path.Base(r.URL.Path))
	}
	_, _ = w.Write([]byte(`{}`))
}

// create answers late, or not at all if the client no longer waits.
func (s *claimServer) create(w http.ResponseWriter, r *http.Request) {
	var claim resourcev1.ResourceClaim
	if err := json.NewDecoder(r.Body).Decode(&claim); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.names[claim.Name] = true
	s.mu.Unlock()
	s.begun()
	select {
	case <-r.Context().Done():
	case <-time.After(100 * time.Millisecond):
		_ = json.NewEncoder(w).Encode(&claim)
	}
}

func (s *claimServer) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.names)
}

// TestInterruptWhileCreating: the API server has a claim whose creation was cut off, and so
// must the check, which deletes it.
func TestInterruptWhileCreating(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	claims := &claimServer{begun: interrupt, names: map[string]bool{}}
	server := httptest.NewServer(claims)
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}})
	require.NoError(t, err)
	w := &world{allocator: allocator{class: &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "check"}}}}
	w.site = site{given: given{namespace: "default"}, client: client, name: "check"}
	_, err = w.createClaim(ctx, "check-0", device{"pool", "gpu-0"})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 1, claims.left())
	require.NoError(t, w.deleteCreated(ctx))
	require.Zero(t, claims.left())
}

// TestUntil: what was missing when the time was up is the error, and not that the last look was cut short.
func TestUntil(t *testing.T) {
	t.Parallel()
	ended := errors.New("the driver has ended")
	for name, test := range map[string]struct {
		find func(ctx context.Context) (string, error)
		want string
	}{
		"found":              {func(context.Context) (string, error) { return "", nil }, ""},
		"fails":              {func(context.Context) (string, error) { return "", ended }, "the driver has ended"},
		"missing to the end": {func(context.Context) (string, error) { return "2 of 4 devices are published", nil }, "after 5s: 2 of 4 devices are published"},
		"the last look is cut short": {func(ctx context.Context) (string, error) {
			if deadline, _ := ctx.Deadline(); time.Until(deadline) > 2*look {
				return "2 of 4 devices are published", nil
			}
			<-ctx.Done()
			return "", fmt.Errorf("list slices: %w", ctx.Err())
		}, "after 5s: 2 of 4 devices are published"},
		"the last look fails": {func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", ended
		}, "the driver has ended"},
		"the only look is cut short": {func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", fmt.Errorf("list slices: %w", ctx.Err())
		}, "after 5s: list slices: context deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				err := waitUntil(ctx, func() (string, error) { return test.find(ctx) })
				if test.want == "" {
					require.NoError(t, err)
					return
				}
				require.EqualError(t, err, test.want)
			})
		})
	}
}

// TestFolderIsShort: sockets have as much room as below /var/lib/kubelet, and instances are as long as UIDs.
func TestFolderIsShort(t *testing.T) {
	t.Parallel()
	folder, err := makeFolder()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(folder)) })
	kubelet, err := startKubelet(t.Context(), folder, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "check-0f5ca1ab", UID: "1"}})
	require.NoError(t, err)
	t.Cleanup(kubelet.stopWatching)
	require.LessOrEqual(t, len(kubelet.root.Plugins()), len("/var/lib/kubelet/plugins"))
	require.LessOrEqual(t, len(kubelet.root.Registry()), len("/var/lib/kubelet/plugins_registry"))
	for _, instance := range []string{firstInstance, secondInstance} {
		require.NoError(t, uuid.Validate(instance))
	}
}
