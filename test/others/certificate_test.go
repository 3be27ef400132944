package main

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestCertificate: who trusts the certificate alone, as a webhook's caBundle has it, takes
// the server for what it says that it is.
func TestCertificate(t *testing.T) {
	t.Parallel()
	const name = "manager.jobset-system.svc"
	now := time.Now()
	made, err := newCertificate(name, now)
	require.NoError(t, err)
	pair, err := tls.X509KeyPair(made.public, made.key)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(made.public))

	_, err = pair.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: now})

	require.NoError(t, err)
	_, err = pair.Leaf.Verify(x509.VerifyOptions{DNSName: "other.jobset-system.svc", Roots: roots, CurrentTime: now})
	require.Error(t, err)
}
