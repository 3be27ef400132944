package access

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/cert"
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

func requireHost(t *testing.T, config *tls.Config, host string) {
	t.Helper()
	got, err := config.GetCertificate(nil)
	require.NoError(t, err)
	require.NoError(t, got.Leaf.VerifyHostname(host))
}

func TestCertificateFiles(t *testing.T) {
	t.Parallel()
	dir, start := t.TempDir(), time.Now()
	c := &Certificate{CertFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key")}
	_, err := c.TLS()
	require.ErrorIs(t, err, os.ErrNotExist)
	write(t, c, "one.example.com", start)
	config, err := c.TLS()
	require.NoError(t, err)
	requireHost(t, config, "one.example.com")

	require.NoError(t, os.WriteFile(c.CertFile, []byte("half"), 0o600))
	requireHost(t, config, "one.example.com")
	write(t, c, "two.example.com", start.Add(time.Hour))
	requireHost(t, config, "two.example.com")
	require.NoError(t, os.Remove(c.KeyFile))
	requireHost(t, config, "two.example.com")
}

func TestCertificateMade(t *testing.T) {
	t.Parallel()
	config, err := (&Certificate{}).TLS()
	require.NoError(t, err)
	requireHost(t, config, "localhost")
	first, err := config.GetCertificate(nil)
	require.NoError(t, err)
	again, err := config.GetCertificate(nil)
	require.NoError(t, err)
	require.Same(t, first, again)
}

func TestCertificateHalf(t *testing.T) {
	t.Parallel()
	for _, c := range []*Certificate{{CertFile: "tls.crt"}, {KeyFile: "tls.key"}} {
		_, err := c.TLS()
		require.EqualError(t, err, "give both --tls-cert-file and --tls-private-key-file, or neither")
	}
}
