// The command node-server answers kubectl exec and kubectl port-forward for Pods of drivers on fake nodes.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"flag"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kwok-dra/kwok-dra/test/drivers/nodeserver"
)

// settings are the flags.
type settings struct{ kubeconfig, plugins, kwok, listen string }

func main() {
	var s settings
	flag.StringVar(&s.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig file")
	flag.StringVar(&s.plugins, "plugins-dir", "", "kwok-dra's directory of plugins")
	flag.StringVar(&s.kwok, "kwok", "https://127.0.0.1:10247", "where kwok serves exec and logs, for the Pods of others")
	flag.StringVar(&s.listen, "listen", "127.0.0.1:0", "address to listen on; whoever reaches it can run programs here")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, s)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "node-server:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s settings) error {
	if s.plugins == "" {
		return errors.New("read -plugins-dir: want kwok-dra's directory of plugins")
	}
	kwok, err := url.Parse(s.kwok)
	if err != nil {
		return fmt.Errorf("read -kwok: %w", err)
	}
	kwokPort, err := strconv.ParseInt(kwok.Port(), 10, 32)
	if err != nil {
		return fmt.Errorf("read the port of -kwok %s: %w", s.kwok, err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1 // each request of others is one of ours
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	certificate, err := newCertificate()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", s.listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", s.listen, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	announced := make(chan error, 1)
	go func() {
		announced <- nodeserver.Announce(ctx, client, int32(listener.Addr().(*net.TCPAddr).Port), int32(kwokPort))
		cancel()
	}()
	server := nodeserver.New(nodeserver.Options{Client: client, Plugins: s.plugins, Kwok: kwok})
	err = server.Serve(ctx, listener, certificate)
	cancel()
	return errors.Join(err, <-announced)
}

// newCertificate makes a certificate that signs itself, which is what the API server expects of a kubelet
// by default.
func newCertificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make a key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "node-server"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().AddDate(1, 0, 0),
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("sign a certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: key}, nil
}
