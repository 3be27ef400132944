package kubectldra

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// watching are the commands that have -w.
func watching(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, command := range New(genericiooptions.IOStreams{}).Commands() {
		if command.Flags().Lookup("watch") != nil {
			names = append(names, command.Name())
		}
	}
	require.ElementsMatch(t, []string{"claims", "devices", "nodes", "overview", "pods"}, names)
	return names
}

// ask runs a command against a server until it ends by itself.
func ask(t *testing.T, server string, arguments ...string) (out, errOut string, err error) {
	t.Helper()
	streams, _, shown, told := genericiooptions.NewTestIOStreams()
	command := New(streams)
	command.SetArgs(append(arguments, "--kubeconfig", os.DevNull, "--server", server))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err = command.ExecuteContext(ctx)
	return shown.String(), told.String(), err
}

// TestUnservedAPI: what is never served is not waited for, and not missing.
func TestUnservedAPI(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		if strings.HasPrefix(request.URL.Path, "/apis/resource.k8s.io/") {
			http.NotFound(response, request)
			return
		}
		response.Header().Set("Content-Type", "application/json")
		if request.URL.Query().Get("watch") == "" {
			_, _ = response.Write([]byte(`{"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}}`))
			return
		}
		response.(http.Flusher).Flush()
		<-request.Context().Done()
	}))
	defer server.Close()
	pod := filepath.Join(t.TempDir(), "pod.yaml")
	require.NoError(t, os.WriteFile(pod, []byte(`{"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "train"}, "spec": {}}`), 0o600))
	lines := [][]string{{"check"}, {"claim", "train"}, {"why", "claim/train"}, {"fit", "-f", pod}}
	for _, name := range watching(t) {
		lines = append(lines, []string{name, "-w"})
	}
	for _, line := range lines {
		out, errOut, err := ask(t, server.URL, line...)
		require.EqualError(t, err, "the API server does not serve resource.k8s.io/v1: use Kubernetes 1.34 or later, and do not switch the API off", line)
		require.Empty(t, out+errOut, line)
	}
}

// TestWatchOfNoServer ends as kubectl does.
func TestWatchOfNoServer(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(nil)
	server.Close()
	for _, name := range watching(t) {
		out, _, err := ask(t, server.URL, name, "-w")
		require.ErrorContains(t, err, "connection refused", name)
		require.Empty(t, out, name)
	}
}
