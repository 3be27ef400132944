// Package kubeconfig writes how a client reaches its API server as a file, for programs that take nothing else.
package kubeconfig

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	// name is that of the only context, its cluster and its user.
	name = "kwok-dra"
	// execExtension is where a cluster has the configuration of its exec plugin, see clientcmdapi.ExecConfig.
	execExtension = "client.authentication.k8s.io/exec"
)

var errTransport = errors.New("it has a transport or a dialer of its own, which no kubeconfig can have: remove it")

// Write writes a kubeconfig file by which a program reaches the same API server as the same user. The file needs no
// other one, but for a token that is read from a file again and again.
func Write(path string, c *rest.Config, namespace string) error {
	if c.Transport != nil || c.Dial != nil {
		return fmt.Errorf("write rest.Config of %s as kubeconfig: %w", c.Host, errTransport)
	}
	server, _, err := rest.DefaultServerUrlFor(c)
	if err != nil {
		return fmt.Errorf("read rest.Config of %s: %w", c.Host, err)
	}
	proxy, err := proxyFor(c, server)
	if err != nil {
		return fmt.Errorf("find the proxy of %s: %w", c.Host, err)
	}
	c = rest.CopyConfig(c)
	if err := rest.LoadTLSFiles(c); err != nil {
		return fmt.Errorf("read the certificates for %s: %w", c.Host, err)
	}
	made := clientcmdapi.NewConfig()
	made.Clusters[name] = &clientcmdapi.Cluster{
		Server: server.String(), TLSServerName: c.ServerName, InsecureSkipTLSVerify: c.Insecure, CertificateAuthorityData: c.CAData,
		ProxyURL: proxy, DisableCompression: c.DisableCompression,
	}
	if c.ExecProvider != nil && c.ExecProvider.Config != nil {
		made.Clusters[name].Extensions = map[string]runtime.Object{execExtension: c.ExecProvider.Config}
	}
	made.AuthInfos[name] = &clientcmdapi.AuthInfo{
		ClientCertificateData: c.CertData, ClientKeyData: c.KeyData,
		Token: c.BearerToken, TokenFile: c.BearerTokenFile, Username: c.Username, Password: c.Password,
		Impersonate: c.Impersonate.UserName, ImpersonateUID: c.Impersonate.UID, ImpersonateGroups: c.Impersonate.Groups, ImpersonateUserExtra: c.Impersonate.Extra,
		AuthProvider: c.AuthProvider, Exec: c.ExecProvider,
	}
	made.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: namespace}
	made.CurrentContext = name
	if err := clientcmd.WriteToFile(*made, path); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}

// proxyFor is the proxy for a server, or "" for none.
func proxyFor(c *rest.Config, server *url.URL) (string, error) {
	if c.Proxy == nil {
		return "", nil
	}
	proxy, err := c.Proxy(&http.Request{URL: server})
	if err != nil || proxy == nil {
		return "", err
	}
	return proxy.String(), nil
}
