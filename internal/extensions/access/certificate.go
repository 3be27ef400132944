package access

import (
	"crypto/tls"
	"errors"
	"fmt"
	"sync/atomic"

	"k8s.io/client-go/util/cert"
)

// Certificate is what TLS connections are served with.
type Certificate struct {
	// CertFile and KeyFile are PEM files. They are read for each connection, since those of a mounted Secret change. If both
	// are empty, a self-signed certificate for localhost is made at the start.
	CertFile, KeyFile string
}

// TLS returns the configuration of a server with the certificate. It returns an error if the files cannot be used. If they
// become unusable later, such as while only one of them is written, the last good certificate is served.
func (c *Certificate) TLS() (*tls.Config, error) {
	if (c.CertFile == "") != (c.KeyFile == "") {
		return nil, errors.New("give both --tls-cert-file and --tls-private-key-file, or neither")
	}
	first, err := c.readCertificate()
	if err != nil {
		return nil, err
	}
	var lastGood atomic.Pointer[tls.Certificate]
	lastGood.Store(first)
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		if c.CertFile != "" {
			if newest, err := c.readCertificate(); err == nil {
				lastGood.Store(newest)
			}
		}
		return lastGood.Load(), nil
	}}, nil
}

// readCertificate reads the files, or makes a certificate if there are none.
func (c *Certificate) readCertificate() (*tls.Certificate, error) {
	if c.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("read certificate %s and key %s: %w", c.CertFile, c.KeyFile, err)
		}
		return &pair, nil
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		return nil, fmt.Errorf("make certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("read the certificate just made: %w", err)
	}
	return &pair, nil
}
