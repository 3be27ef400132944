package access

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"

	"k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"
)

// Certificate is what TLS connections are served with.
type Certificate struct {
	// CertFile and KeyFile are PEM files. They are read for each connection, since those of a mounted Secret change. If both
	// are empty, a self-signed certificate for localhost is made at the start.
	CertFile, KeyFile string
}

// TLS returns the configuration of a server with the certificate. It returns an error if the files cannot be used. If they
// become unusable later, such as while only one of them is written, the last good certificate is served, and the log says so.
func (c *Certificate) TLS() (*tls.Config, error) {
	if (c.CertFile == "") != (c.KeyFile == "") {
		return nil, errors.New("give both --tls-cert-file and --tls-private-key-file, or neither")
	}
	first, err := c.readCertificate()
	if err != nil {
		return nil, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CertFile == "" {
		config.Certificates = []tls.Certificate{*first}
	} else {
		r := &reloader{Certificate: c, lastGood: first}
		config.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) { return r.reload(hello.Context()), nil }
	}
	return config, nil
}

// reloader serves the files of a Certificate as they are.
type reloader struct {
	*Certificate

	mu       sync.Mutex
	lastGood *tls.Certificate
	// failure is why lastGood is not what the files have, or "".
	failure string
}

// reload returns the certificate for a connection. It logs a failure once, not for each connection.
func (r *reloader) reload(ctx context.Context) *tls.Certificate {
	newest, err := r.readCertificate()
	r.mu.Lock()
	defer r.mu.Unlock()
	logger, before := klog.FromContext(ctx), r.failure
	if err != nil {
		if r.failure = err.Error(); r.failure != before {
			logger.Error(err, "Failed to reload the certificate; serving the last good one")
		}
		return r.lastGood
	}
	if r.lastGood, r.failure = newest, ""; before != "" {
		logger.Info("Reloaded the certificate", "certFile", r.CertFile, "keyFile", r.KeyFile)
	}
	return newest
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
