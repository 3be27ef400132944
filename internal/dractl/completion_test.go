package dractl

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// names serves the names of nodes, claims and namespaces, and writes a kubeconfig
// that names it.
func names(t *testing.T) string {
	t.Helper()
	lists := map[string][]string{
		"/api/v1/nodes":      {"gpu-10", "gpu-2", "cpu-0"},
		"/api/v1/namespaces": {"default", "team"},
		"/apis/resource.k8s.io/v1/namespaces/team/resourceclaims": {"training-1", "other"},
		"/api/v1/namespaces/team/pods":                            {"training-10", "training-9"},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		found, ok := lists[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		list := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}}
		for _, name := range found {
			list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(list)
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`
apiVersion: v1
kind: Config
current-context: test
clusters: [{name: c, cluster: {server: %s}}]
contexts: [{name: test, context: {cluster: c, namespace: team}}, {name: prod, context: {cluster: c}}]
`, server.URL)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// TestComplete has the shell complete names of the cluster and of the catalogue.
func TestComplete(t *testing.T) {
	t.Parallel()
	kubeconfig := names(t)
	for name, test := range map[string]struct {
		typed []string
		want  string
	}{
		"nodes":                   {[]string{"status", "node", ""}, "cpu-0 gpu-2 gpu-10"},
		"nodes that begin so":     {[]string{"status", "node", "gpu-"}, "gpu-2 gpu-10"},
		"a node is enough":        {[]string{"status", "node", "gpu-2", ""}, ""},
		"nodes of the overview":   {[]string{"status", "--node", "cpu-0,gpu"}, "cpu-0,gpu-2 cpu-0,gpu-10"},
		"claims of the namespace": {[]string{"status", "claim", "tr"}, "training-1"},
		"claims of none":          {[]string{"status", "claim", "-n", "default", ""}, ""},
		"Pods that wait":          {[]string{"why", "tr"}, "training-9 training-10"},
		"namespaces":              {[]string{"status", "-n", ""}, "default team"},
		"contexts":                {[]string{"status", "--context", "p"}, "prod"},
		"targets":                 {[]string{"scale", "nvidia-h100"}, "nvidia-h100 nvidia-h100-mig"},
		"targets of one node":     {[]string{"generate", "amd-mi300x,rd"}, "amd-mi300x,rdma-nic"},
		"profiles":                {[]string{"generate", "--profile", "nvidia-l"}, "nvidia-l4"},
		"formats":                 {[]string{"version", "-o", ""}, "table json yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			arguments := append([]string{"__complete", "--kubeconfig", kubeconfig}, test.typed...)
			out, _, _ := run(t, "", arguments...)
			lines := strings.Split(strings.TrimSpace(out), "\n")
			directive := lines[len(lines)-1]
			require.True(t, strings.HasPrefix(directive, ":"), out)
			require.Equal(t, test.want, strings.Join(lines[:len(lines)-1], " "))
		})
	}
}
