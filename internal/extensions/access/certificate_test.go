package access

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

// write makes a certificate for a host in two files.
func write(t *testing.T, c *Certificate, host string, modified time.Time) {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey(host, nil, nil)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(c.CertFile, certificate, 0o600))
	require.NoError(t, os.WriteFile(c.KeyFile, key, 0o600))
	require.NoError(t, os.Chtimes(c.CertFile, modified, modified))
}

// connect returns the certificate that a connection is served with.
func connect(ctx context.Context, t *testing.T, config *tls.Config) *x509.Certificate {
	t.Helper()
	near, far := net.Pipe()
	server, client := tls.Server(far, config), tls.Client(near, &tls.Config{InsecureSkipVerify: true})
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.HandshakeContext(ctx) })
	require.NoError(t, client.HandshakeContext(ctx))
	require.NoError(t, near.Close()) // before the server has sent its session tickets, which nobody reads
	serving.Wait()
	require.NoError(t, far.Close())
	return client.ConnectionState().PeerCertificates[0]
}

func TestCertificateFiles(t *testing.T) {
	t.Parallel()
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	ctx, log := klog.NewContext(t.Context(), logger), logger.GetSink().(ktesting.Underlier).GetBuffer()
	dir, start := t.TempDir(), time.Now()
	c := &Certificate{CertFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key")}
	_, err := c.TLS()
	require.ErrorIs(t, err, os.ErrNotExist)
	write(t, c, "one.example.com", start)
	config, err := c.TLS()
	require.NoError(t, err)
	serves := func(host string) {
		t.Helper()
		for range 2 {
			require.NoError(t, connect(ctx, t, config).VerifyHostname(host))
		}
	}
	serves("one.example.com")
	require.Empty(t, log.String())

	require.NoError(t, os.WriteFile(c.CertFile, []byte("half"), 0o600))
	serves("one.example.com")
	require.Equal(t, 1, strings.Count(log.String(), "Failed to reload the certificate; serving the last good one"), "once, not for each connection")
	require.Contains(t, log.String(), fmt.Sprintf("read certificate %s and key %s: tls: failed to find any PEM data", c.CertFile, c.KeyFile))
	write(t, c, "two.example.com", start.Add(time.Hour))
	serves("two.example.com")
	require.Equal(t, 1, strings.Count(log.String(), "Reloaded the certificate"))
	require.NoError(t, os.Remove(c.KeyFile))
	serves("two.example.com")
	require.NoError(t, os.Remove(c.CertFile))
	serves("two.example.com")
	require.Equal(t, 3, strings.Count(log.String(), "Failed to reload the certificate"), "each other cause")
}

func TestCertificateMade(t *testing.T) {
	t.Parallel()
	config, err := (&Certificate{}).TLS()
	require.NoError(t, err)
	first := connect(t.Context(), t, config)
	require.NoError(t, first.VerifyHostname("localhost"))
	require.Equal(t, first, connect(t.Context(), t, config))
}

func TestCertificateHalf(t *testing.T) {
	t.Parallel()
	for _, c := range []*Certificate{{CertFile: "tls.crt"}, {KeyFile: "tls.key"}} {
		_, err := c.TLS()
		require.EqualError(t, err, "give both --tls-cert-file and --tls-private-key-file, or neither")
	}
}
