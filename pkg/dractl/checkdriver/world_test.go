package checkdriver

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
	_, err = w.newClaim(ctx, "check-0", device{"pool", "gpu-0"})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 1, claims.left())
	require.NoError(t, w.close(ctx))
	require.Zero(t, claims.left())
}
