// Package exampledriver runs dra-example-driver on fake nodes: a process for each node, with a kubeconfig of its own whose
// token is bound to the node, as the driver's DaemonSet would run it.
package exampledriver

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/internal/admin"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

const (
	// Name is that of the driver, and of its ServiceAccount.
	Name = "gpu.example.com"
	// namespace is that of all drivers of kustomize/node-load.
	namespace = "kwok-dra-drivers"
	program   = "dra-example-kubeletplugin"
	// folderPatience is how long kwok-dra takes to make the folder of a node that it will never make.
	folderPatience = time.Minute
)

//go:embed rights.yaml
var rights string

// build builds the driver and returns its path. It builds once per process.
var build = sync.OnceValues(func() (string, error) {
	path := filepath.Join(sidecar.Root(), "bin", program)
	return path, sidecar.Build(filepath.Join(sidecar.Root(), "test", "drivers", "others"), path, "sigs.k8s.io/dra-example-driver/cmd/"+program)
})

// Fleet is the driver on some nodes of a cluster.
type Fleet struct {
	cluster *cluster.Cluster
	client  kubernetes.Interface
	// folder is the --plugins-dir of kwok-dra.
	folder, program string
	processes       []*exec.Cmd
}

// New builds the driver, and gives it its rights. The cluster has the namespace of kustomize/node-load.
func New(ctx context.Context, c *cluster.Cluster, client kubernetes.Interface, folder string) (*Fleet, error) {
	built, err := build()
	if err != nil {
		return nil, err
	}
	f := &Fleet{cluster: c, client: client, folder: folder}
	if f.program, err = c.Adopt(built); err != nil {
		return nil, err
	}
	_, err = c.KubectlInput(ctx, strings.NewReader(rights), "apply", "-f", "-")
	return f, err
}

// Start starts the driver of a node, which has a kubeconfig, as soon as kwok-dra has made the folder of the node.
func (f *Fleet) Start(ctx context.Context, node string) error {
	root := filepath.Join(f.folder, node)
	if err := awaitFolder(ctx, filepath.Join(root, "plugins")); err != nil {
		return fmt.Errorf("start the driver of node %s: %w", node, err)
	}
	log, err := os.Create(filepath.Join(f.cluster.Logs(), program+"-"+node+".log"))
	if err != nil {
		return fmt.Errorf("create the log of the driver of node %s: %w", node, err)
	}
	defer func() { _ = log.Close() }()
	driver := exec.Command(f.program, "--kubeconfig", f.kubeconfig(node), "--node-name", node, "--pod-uid", node,
		"--device-profile", "gpu", "--driver-name", Name, "--cdi-root", filepath.Join(root, "cdi"),
		"--kubelet-registrar-directory-path", filepath.Join(root, "plugins_registry"), "--kubelet-plugins-directory-path", filepath.Join(root, "plugins"))
	driver.Stdout, driver.Stderr = log, log
	// Out of reach of a Ctrl-C that is meant for the caller.
	driver.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := driver.Start(); err != nil {
		return fmt.Errorf("start the driver of node %s: %w", node, err)
	}
	f.processes = append(f.processes, driver)
	return nil
}

func awaitFolder(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, folderPatience)
	defer cancel()
	for {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", path, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// kubeconfig is the path of that of a node's driver.
func (f *Fleet) kubeconfig(node string) string {
	return filepath.Join(filepath.Dir(f.cluster.Kubeconfig()), program+"-"+node+".kubeconfig.yaml")
}

// WriteKubeconfig writes that of a node's driver, with a token that is bound to the node as that of a Pod on the node is.
func (f *Fleet) WriteKubeconfig(ctx context.Context, name string) error {
	node, err := f.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get node %s: %w", name, err)
	}
	token, err := f.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, Name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Node", Name: name, UID: node.UID}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("request a token for the driver of node %s: %w", name, err)
	}
	server, err := admin.Config(f.cluster.Kubeconfig())
	if err != nil {
		return err
	}
	config := clientcmdapi.NewConfig()
	config.CurrentContext = Name
	config.Contexts[Name] = &clientcmdapi.Context{Cluster: Name, AuthInfo: Name, Namespace: corev1.NamespaceDefault}
	config.AuthInfos[Name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	config.Clusters[Name] = &clientcmdapi.Cluster{Server: server.Host, CertificateAuthorityData: server.CAData, InsecureSkipTLSVerify: server.Insecure}
	return clientcmd.WriteToFile(*config, f.kubeconfig(name))
}

// Stop asks all drivers to end, and waits until they have.
func (f *Fleet) Stop() error {
	var errs []error
	for _, process := range f.processes {
		if err := process.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			errs = append(errs, fmt.Errorf("end a driver: %w", err))
		}
	}
	for _, process := range f.processes {
		if err := process.Wait(); err != nil {
			errs = append(errs, fmt.Errorf("a driver has ended: %w", err))
		}
	}
	f.processes = nil
	return errors.Join(errs...)
}
