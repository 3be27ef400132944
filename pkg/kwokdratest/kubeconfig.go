package kwokdratest

import (
	"errors"
	"fmt"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

var errTransport = errors.New("it has a transport, a dialer or a proxy of its own, which no kubeconfig can have: remove it")

// writeKubeconfig writes how the API server is reached as a file, which is what kwok takes.
func writeKubeconfig(dir string, c *rest.Config) (string, error) {
	if c.Transport != nil || c.Dial != nil || c.Proxy != nil || c.AuthConfigPersister != nil {
		return "", fmt.Errorf("write rest.Config of %s as kubeconfig: %w", c.Host, errTransport)
	}
	server, _, err := rest.DefaultServerUrlFor(c)
	if err != nil {
		return "", fmt.Errorf("read rest.Config of %s: %w", c.Host, err)
	}
	const name = "test"
	made := clientcmdapi.NewConfig()
	made.Clusters[name] = &clientcmdapi.Cluster{
		Server: server.Scheme + "://" + server.Host, TLSServerName: c.ServerName, InsecureSkipTLSVerify: c.Insecure,
		CertificateAuthority: c.CAFile, CertificateAuthorityData: c.CAData, DisableCompression: c.DisableCompression,
	}
	made.AuthInfos[name] = &clientcmdapi.AuthInfo{
		ClientCertificate: c.CertFile, ClientCertificateData: c.CertData, ClientKey: c.KeyFile, ClientKeyData: c.KeyData,
		Token: c.BearerToken, TokenFile: c.BearerTokenFile, Username: c.Username, Password: c.Password,
		Impersonate: c.Impersonate.UserName, ImpersonateUID: c.Impersonate.UID, ImpersonateGroups: c.Impersonate.Groups, ImpersonateUserExtra: c.Impersonate.Extra,
		AuthProvider: c.AuthProvider, Exec: c.ExecProvider,
	}
	made.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	made.CurrentContext = name
	file := filepath.Join(dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*made, file); err != nil {
		return "", fmt.Errorf("write kubeconfig: %w", err)
	}
	return file, nil
}
