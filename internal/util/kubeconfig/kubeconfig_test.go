package kubeconfig

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func writeFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// TestWrite writes configurations, and compares what clientcmd reads.
func TestWrite(t *testing.T) {
	t.Parallel()
	proxy := &url.URL{Scheme: "http", Host: "proxy.example.com:3128"}
	token := writeFile(t, "of a file")
	for name, c := range map[string]struct{ given, want *rest.Config }{
		"token of a file": {
			&rest.Config{Host: "https://a.example.com:6443", BearerTokenFile: token},
			&rest.Config{Host: "https://a.example.com:6443", BearerToken: "of a file", BearerTokenFile: token},
		},
		"certificates of files": {
			&rest.Config{Host: "a.example.com:6443", TLSClientConfig: rest.TLSClientConfig{
				CAFile: writeFile(t, "CA"), CertFile: writeFile(t, "certificate"), KeyFile: writeFile(t, "key"), ServerName: "b.example.com",
			}},
			&rest.Config{Host: "https://a.example.com:6443", TLSClientConfig: rest.TLSClientConfig{
				CAData: []byte("CA"), CertData: []byte("certificate"), KeyData: []byte("key"), ServerName: "b.example.com",
			}},
		},
		"path and impersonation": {
			&rest.Config{Host: "https://a.example.com/clusters/b", Impersonate: rest.ImpersonationConfig{UserName: "x", Groups: []string{"y"}, Extra: map[string][]string{"reason": {"z"}}}, DisableCompression: true},
			&rest.Config{Host: "https://a.example.com/clusters/b", Impersonate: rest.ImpersonationConfig{UserName: "x", Groups: []string{"y"}, Extra: map[string][]string{"reason": {"z"}}}, DisableCompression: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "kubeconfig")
			require.NoError(t, Write(file, c.given, "team"))
			read, err := clientcmd.BuildConfigFromFlags("", file)
			require.NoError(t, err)
			require.Equal(t, c.want, read)
		})
	}

	file := filepath.Join(t.TempDir(), "kubeconfig")
	exec := &clientcmdapi.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1", Command: "/bin/login", InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
		ProvideClusterInfo: true, Config: &runtime.Unknown{Raw: []byte(`{"audience":"a"}`), ContentType: runtime.ContentTypeJSON},
	}
	require.NoError(t, Write(file, &rest.Config{Host: "https://a.example.com", Proxy: http.ProxyURL(proxy), ExecProvider: exec}, "team"))
	read, err := clientcmd.BuildConfigFromFlags("", file)
	require.NoError(t, err)
	require.Equal(t, "/bin/login", read.ExecProvider.Command)
	require.JSONEq(t, `{"audience":"a"}`, string(read.ExecProvider.Config.(*runtime.Unknown).Raw))
	readProxy, err := read.Proxy(&http.Request{})
	require.NoError(t, err)
	require.Equal(t, proxy, readProxy)

	require.ErrorContains(t, Write(file, &rest.Config{Host: "a.example.com", Transport: http.DefaultTransport}, ""), "write rest.Config of a.example.com as kubeconfig: it has a transport")
}
