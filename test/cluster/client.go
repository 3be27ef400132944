package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// adminClient asks the API server whether something is there. It is not
// kubectl because it asks many times a second.
type adminClient struct {
	server string
	http   http.Client
}

func newAdminClient(c *Cluster) (*adminClient, error) {
	apiServer, err := c.componentByName(APIServer)
	if err != nil {
		return nil, err
	}
	cert, err := tls.LoadX509KeyPair(c.statePath("pki", "admin.crt"), c.statePath("pki", "admin.key"))
	if err != nil {
		return nil, fmt.Errorf("load the administrator's certificate: %w", err)
	}
	ca, err := os.ReadFile(c.statePath("pki", "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("load the cluster's certificate authority: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return &adminClient{
		server: fmt.Sprintf("https://%s:%d", loopback, apiServer.Ports[0].Port),
		http: http.Client{
			Timeout:   5 * time.Second,
			Transport: &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: roots}},
		},
	}, nil
}

// isServed says whether a GET of path succeeds.
func (a *adminClient) isServed(ctx context.Context, path string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.server+path, nil)
	if err != nil {
		return false
	}
	resp, err := a.http.Do(req)
	if err != nil {
		return false
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode == http.StatusOK
}

// canCreatePods says whether a Pod could be created: without its default ServiceAccount,
// which the controller manager makes, a namespace takes none.
func (a *adminClient) canCreatePods(ctx context.Context, o Options) bool {
	if !a.isServed(ctx, "/readyz") {
		return false
	}
	return o.isDisabled(ControllerManager) || a.isServed(ctx, "/api/v1/namespaces/default/serviceaccounts/default")
}
