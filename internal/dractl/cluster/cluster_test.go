package cluster

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const twoClusters = `
apiVersion: v1
kind: Config
current-context: a
clusters:
- {name: a, cluster: {server: "https://a.example.com:6443"}}
- {name: b, cluster: {server: "https://b.example.com/clusters/b", certificate-authority: ca.crt, proxy-url: "http://proxy.example.com:3128"}}
contexts:
- {name: a, context: {cluster: a, user: a, namespace: team}}
users:
- {name: a, user: {token: of-a}}
- {name: other, user: {username: other, password: secret}}
`

// TestWriteKubeconfig proves that the file leads where the flags lead the command itself.
func TestWriteKubeconfig(t *testing.T) {
	t.Parallel()
	const none = "apiVersion: v1\nkind: Config\n"
	for name, c := range map[string]struct {
		kubeconfig          string
		arguments           []string
		host, as, namespace string
	}{
		"context":           {twoClusters, nil, "https://a.example.com:6443", "", "team"},
		"cluster and token": {twoClusters, []string{"--cluster", "b", "--as", "x", "--token", "t"}, "https://b.example.com/clusters/b", "x", "team"},
		"user":              {twoClusters, []string{"--user", "other", "--namespace", "mine"}, "https://a.example.com:6443", "", "mine"},
		"server":            {twoClusters, []string{"--server", "https://c.example.com"}, "https://c.example.com", "", "team"},
		"server alone":      {none, []string{"--server", "https://c.example.com", "--token", "t"}, "https://c.example.com", "", "default"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(folder, "config"), []byte(c.kubeconfig), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(folder, "ca.crt"), []byte("CA"), 0o600))
			flags, command := &Flags{}, &cobra.Command{}
			flags.AddTo(command)
			require.NoError(t, command.ParseFlags(append([]string{"--kubeconfig", filepath.Join(folder, "config")}, c.arguments...)))

			path := filepath.Join(folder, "written")
			server, err := flags.WriteKubeconfig(path)
			require.NoError(t, err)
			require.Equal(t, c.host, server)
			want, err := flags.RESTConfig()
			require.NoError(t, err)
			require.NoError(t, rest.LoadTLSFiles(want))
			got, err := clientcmd.BuildConfigFromFlags("", path)
			require.NoError(t, err)
			require.Equal(t, c.host, got.Host)
			require.Equal(t, c.as, got.Impersonate.UserName)
			require.Equal(t, []string{want.BearerToken, want.Username, want.Password}, []string{got.BearerToken, got.Username, got.Password})
			require.Equal(t, want.CAData, got.CAData)
			require.Equal(t, proxyOf(t, want), proxyOf(t, got))
			written, err := clientcmd.LoadFromFile(path)
			require.NoError(t, err)
			require.Equal(t, c.namespace, written.Contexts[written.CurrentContext].Namespace)
		})
	}
}

func proxyOf(t *testing.T, config *rest.Config) string {
	t.Helper()
	if config.Proxy == nil {
		return ""
	}
	proxy, err := config.Proxy(&http.Request{})
	require.NoError(t, err)
	return proxy.String()
}
