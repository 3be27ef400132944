package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNameProxy(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Host)
	}))
	defer server.Close()
	// The certificate of such a server has this name, which no resolver knows.
	const name = "example.com:6443"
	proxy, err := startNameProxy(map[string]string{name: server.Listener.Addr().String()})
	require.NoError(t, err)
	defer func() { require.NoError(t, proxy.Close()) }()
	address, err := url.Parse(proxy.url)
	require.NoError(t, err)
	client := server.Client()
	client.Transport.(*http.Transport).Proxy = http.ProxyURL(address)

	get := func(url string) (string, error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		require.NoError(t, err)
		response, err := client.Do(request)
		if err != nil {
			return "", err
		}
		defer func() { _ = response.Body.Close() }()
		said, err := io.ReadAll(response.Body)
		return string(said), err
	}
	said, err := get("https://" + name)
	require.NoError(t, err)
	require.Equal(t, name, said)
	_, err = get("https://www.example.com:6443")
	require.ErrorContains(t, err, "Not Found")
}
