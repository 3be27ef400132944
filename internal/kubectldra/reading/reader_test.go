package reading

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// apiServer serves claims in pages, nodes, and refuses or does not know all else.
type apiServer struct {
	claims int

	lock     sync.Mutex
	requests []string
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.lock.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	s.lock.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/apis/resource.k8s.io/v1/resourceclaims":
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		begin, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		list := resourcev1.ResourceClaimList{TypeMeta: metav1.TypeMeta{APIVersion: "resource.k8s.io/v1", Kind: "ResourceClaimList"}}
		for i := begin; i < min(begin+limit, s.claims); i++ {
			meta := metav1.ObjectMeta{Name: fmt.Sprintf("claim-%d", i), ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "driver"}}}
			list.Items = append(list.Items, resourcev1.ResourceClaim{ObjectMeta: meta})
		}
		if begin+limit < s.claims {
			list.Continue = strconv.Itoa(begin + limit)
		}
		_ = json.NewEncoder(w).Encode(list)
	case "/api/v1/nodes":
		node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gpu-0"}, Status: corev1.NodeStatus{Images: []corev1.ContainerImage{{Names: []string{"large"}}}}}
		_ = json.NewEncoder(w).Encode(corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}, Items: []corev1.Node{node}})
	case "/api/v1/namespaces/team/pods", "/apis/resource.k8s.io/v1/resourceslices":
		w.WriteHeader(http.StatusForbidden)
	case "/api/v1/events":
		w.WriteHeader(http.StatusInternalServerError)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// serve returns flags that reach the server as a user with a kubeconfig would.
func serve(t *testing.T, handler http.Handler, arguments ...string) *Flags {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `
apiVersion: v1
kind: Config
current-context: test
clusters: [{name: c, cluster: {server: %s}}]
contexts: [{name: test, context: {cluster: c, namespace: team}}, {name: prod, context: {cluster: c}}]
`, server.URL), 0o600))
	reach, command := NewFlags(), &cobra.Command{Use: "command", Run: func(*cobra.Command, []string) {}}
	reach.AddTo(command)
	command.SetArgs(append([]string{"--kubeconfig", file}, arguments...))
	require.NoError(t, command.Execute())
	return reach
}

func newReader(t *testing.T, handler http.Handler) *Reader {
	t.Helper()
	reader, err := serve(t, handler).NewReader()
	require.NoError(t, err)
	return reader
}

// TestPages lists in pages, and only what answers need.
func TestPages(t *testing.T) {
	t.Parallel()
	server := &apiServer{claims: 1201}
	reader := newReader(t, server)
	claims, err := reader.Claims(t.Context(), "")
	require.NoError(t, err)
	require.Len(t, claims, 1201)
	require.Equal(t, "claim-1200", claims[1200].Name)
	require.Len(t, server.requests, 3)
	require.False(t, slices.ContainsFunc(claims, func(c *resourcev1.ResourceClaim) bool { return c.ManagedFields != nil }))
	nodes, err := reader.Nodes(t.Context())
	require.NoError(t, err)
	require.Equal(t, "gpu-0", nodes[0].Name)
	require.Nil(t, nodes[0].Status.Images)
	require.Empty(t, reader.Unseen())
}

// TestUnseen leaves out and remembers what the user may not list and what the server does not have. Any other
// failure is an error.
func TestUnseen(t *testing.T) {
	t.Parallel()
	reader := newReader(t, &apiServer{})
	require.NoError(t, InParallel(
		func() error { _, err := reader.Slices(t.Context()); return err },
		func() error { _, err := reader.Slices(t.Context()); return err },
		func() error { _, err := reader.Pods(t.Context(), "team", ""); return err },
		func() error { _, err := reader.Classes(t.Context()); return err },
		func() error { _, err := reader.TaintRules(t.Context()); return err },
	))
	unseen := reader.Unseen()
	slices.SortFunc(unseen, func(a, b Unseen) int { return strings.Compare(a.Resource, b.Resource) })
	require.Equal(t, []Unseen{
		{"list", "deviceclasses", "", false},
		{"list", "pods", "team", true},
		{"list", "resourceslices", "", true},
	}, unseen, "a server without DeviceTaintRules has none")
	_, err := reader.Events(t.Context(), "", "reason=FailedScheduling")
	require.ErrorContains(t, err, "list events: ")
}

// TestNamespace is that of the flag, of the context, or all.
func TestNamespace(t *testing.T) {
	t.Parallel()
	for want, arguments := range map[string][]string{"team": nil, "other": {"-n", "other"}, "default": {"--context", "prod"}} {
		namespace, err := serve(t, &apiServer{}, arguments...).Namespace(false)
		require.NoError(t, err)
		require.Equal(t, want, namespace)
	}
	namespace, err := NewFlags().Namespace(true)
	require.NoError(t, err)
	require.Empty(t, namespace)
}
