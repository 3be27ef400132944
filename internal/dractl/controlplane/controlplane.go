package controlplane

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"

	"github.com/kwok-dra/kwok-dra/internal/dractl/process"
)

const (
	loopback = "127.0.0.1"
	// patience is how long the API server has to start, however busy the machine.
	patience = 2 * time.Minute
	// grace is how long a program has to end.
	grace = 10 * time.Second
	// look is how often Start checks whether the API server is ready.
	look = 100 * time.Millisecond
)

// ControlPlane is an API server that runs.
type ControlPlane struct {
	// Kubeconfig is the file with the administrator's access to it.
	Kubeconfig string

	programs, folder string
	started          []*process.Process
}

// Start starts etcd and kube-apiserver, which are in the folder programs, and waits until they serve. What
// they write is in the other folder, which is the caller's. End it with Stop.
func Start(ctx context.Context, programs, folder string) (*ControlPlane, error) {
	c := &ControlPlane{programs: programs, folder: folder, Kubeconfig: filepath.Join(folder, "kubeconfig")}
	if err := c.startPrograms(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start the control plane of %s: %w", programs, err), c.Stop())
	}
	return c, nil
}

func (c *ControlPlane) startPrograms(ctx context.Context) error {
	etcd, err := freeAddress()
	if err != nil {
		return err
	}
	peers, err := freeAddress()
	if err != nil {
		return err
	}
	server, err := freeAddress()
	if err != nil {
		return err
	}
	if err := c.writeCredentials(server); err != nil {
		return err
	}
	etcdURL, peersURL := "http://"+etcd.String(), "http://"+peers.String()
	if err := c.startProgram(ctx, "etcd", []string{
		"--data-dir=" + c.filePath("etcd"),
		"--listen-client-urls=" + etcdURL, "--advertise-client-urls=" + etcdURL,
		"--listen-peer-urls=" + peersURL, "--initial-advertise-peer-urls=" + peersURL, "--initial-cluster=default=" + peersURL,
		"--unsafe-no-fsync=true", // all of it is thrown away
	}); err != nil {
		return err
	}
	if err := c.startProgram(ctx, "kube-apiserver", c.serverFlags(etcdURL, server)); err != nil {
		return err
	}
	return c.awaitReady(ctx)
}

// freeAddress is an address of loopback that nobody listens on.
func freeAddress() (*net.TCPAddr, error) {
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.ParseIP(loopback)})
	if err != nil {
		return nil, fmt.Errorf("find a free port: %w", err)
	}
	return listener.Addr().(*net.TCPAddr), listener.Close()
}

func (c *ControlPlane) filePath(name string) string { return filepath.Join(c.folder, name) }

// writeCredentials writes the certificate and the token of the API server, and the kubeconfig
// for both.
func (c *ControlPlane) writeCredentials(server *net.TCPAddr) error {
	certificate, key, err := cert.GenerateSelfSignedCertKey(loopback, []net.IP{server.IP}, nil)
	if err != nil {
		return fmt.Errorf("make a certificate: %w", err)
	}
	token := rand.Text()
	for name, content := range map[string][]byte{
		"apiserver.crt": certificate,
		"apiserver.key": key,
		"tokens.csv":    []byte(token + ",admin,admin,system:masters\n"),
	} {
		if err := os.WriteFile(c.filePath(name), content, 0o600); err != nil {
			return fmt.Errorf("write the access to the API server: %w", err)
		}
	}
	const name = "check"
	access := clientcmdapi.NewConfig()
	access.Clusters[name] = &clientcmdapi.Cluster{Server: "https://" + server.String(), CertificateAuthorityData: certificate}
	access.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	access.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	access.CurrentContext = name
	if err := clientcmd.WriteToFile(*access, c.Kubeconfig); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}

func (c *ControlPlane) serverFlags(etcd string, server *net.TCPAddr) []string {
	return []string{
		"--etcd-servers=" + etcd,
		"--bind-address=" + loopback, "--secure-port=" + strconv.Itoa(server.Port),
		// The kubernetes Service cannot lead to loopback.
		"--advertise-address=" + loopback, "--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.0.0.0/24",
		"--tls-cert-file=" + c.filePath("apiserver.crt"), "--tls-private-key-file=" + c.filePath("apiserver.key"),
		"--token-auth-file=" + c.filePath("tokens.csv"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.filePath("apiserver.key"), "--service-account-signing-key-file=" + c.filePath("apiserver.key"),
		// No controller makes the ServiceAccounts of Pods.
		"--disable-admission-plugins=ServiceAccount",
	}
}

// The programs that StartController starts.
const (
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
)

// StartController starts a program of the same folder, which acts on the cluster with the administrator's access.
// It does not wait until the program works.
func (c *ControlPlane) StartController(ctx context.Context, name string, flags ...string) error {
	program := filepath.Join(c.programs, name)
	if _, err := os.Stat(program); err != nil {
		return fmt.Errorf("%w: give a directory that also has %s, from a release of Kubernetes", err, name)
	}
	common := []string{"--kubeconfig=" + c.Kubeconfig, "--leader-elect=false", "--secure-port=0"}
	return c.startProgram(ctx, name, append(common, flags...))
}

// Err is nil as long as all programs run, and then says how the first of them has ended.
func (c *ControlPlane) Err() error {
	for _, p := range c.started {
		if err := p.Err(); err != nil {
			return err
		}
	}
	return nil
}

func (c *ControlPlane) startProgram(ctx context.Context, name string, flags []string) error {
	program := filepath.Join(c.programs, name)
	if _, err := os.Stat(program); err != nil {
		return fmt.Errorf("%w: give a directory that has etcd and kube-apiserver, such as setup-envtest makes", err)
	}
	started, err := process.Start(ctx, process.Options{Arguments: append([]string{program}, flags...), Log: c.filePath(name + ".log")})
	if err == nil {
		c.started = append(c.started, started)
	}
	return err
}

// awaitReady waits until objects can be created.
func (c *ControlPlane) awaitReady(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	var unready error
	err = wait.PollUntilContextTimeout(ctx, look, patience, true, func(ctx context.Context) (bool, error) {
		if err := c.Err(); err != nil {
			return false, err
		}
		if unready = client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); unready == nil {
			_, unready = client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
		}
		return unready == nil, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("the API server is not ready after %s: %w", patience, unready)
	}
	return err
}

// Stop ends the processes.
func (c *ControlPlane) Stop() error {
	var errs []error
	for _, p := range slices.Backward(c.started) {
		errs = append(errs, p.Stop(grace))
	}
	c.started = nil
	return errors.Join(errs...)
}
