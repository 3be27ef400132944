package access

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"k8s.io/client-go/util/cert"
)

// Certificate is what TLS connections are served with.
type Certificate struct {
	// CertFile and KeyFile are PEM files. They are read again when they change, as
	// those of a mounted Secret do. If both are empty, a self-signed certificate for
	// localhost is made at the start.
	CertFile, KeyFile string

	mu       sync.Mutex
	current  *tls.Certificate
	modified [2]time.Time
}

// TLS returns the configuration of a server with the certificate. It returns an error if the files
// cannot be used.
func (c *Certificate) TLS() (*tls.Config, error) {
	if (c.CertFile == "") != (c.KeyFile == "") {
		return nil, errors.New("give both --tls-cert-file and --tls-private-key-file, or neither")
	}
	if _, err := c.getCertificate(nil); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.getCertificate}, nil
}

// getCertificate returns the newest certificate. If the files have become unusable, such as while only
// one of them is written, it returns the last good one.
func (c *Certificate) getCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	modified, err := c.modifiedAt()
	if err == nil && (c.current == nil || modified != c.modified) {
		var read *tls.Certificate
		if read, err = c.readCertificate(); err == nil {
			c.current, c.modified = read, modified
		}
	}
	if c.current == nil {
		return nil, err
	}
	return c.current, nil
}

func (c *Certificate) modifiedAt() ([2]time.Time, error) {
	var modified [2]time.Time
	if c.CertFile == "" {
		return modified, nil
	}
	for i, file := range []string{c.CertFile, c.KeyFile} {
		info, err := os.Stat(file)
		if err != nil {
			return modified, fmt.Errorf("read certificate: %w", err)
		}
		modified[i] = info.ModTime()
	}
	return modified, nil
}

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
