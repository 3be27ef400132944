package nodeserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

const (
	// idleTimeout is a kubelet's limit for a stream without traffic.
	idleTimeout = 4 * time.Hour
	// creationTimeout is a kubelet's limit for a client to open all streams of a request.
	creationTimeout = 30 * time.Second
)

// Options say what a Server works with. All are required.
type Options struct {
	Client kubernetes.Interface
	// Plugins is kwok-dra's directory of plugins, with a folder for each node.
	Plugins string
	// Kwok is where kwok serves exec and logs, which gets the requests for all other Pods.
	Kwok *url.URL
}

// Server answers the API server in the place of a kubelet.
type Server struct {
	Options
	proxies proxies
	mux     *http.ServeMux
}

// New makes a Server, which is an http.Handler.
func New(o Options) *Server {
	s := &Server{Options: o, proxies: proxies{byID: map[string]*proxy{}}, mux: http.NewServeMux()}
	forward := httputil.NewSingleHostReverseProxy(o.Kwok)
	// As the API server, which does not check the certificate of a kubelet by default either.
	forward.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // a test's own kwok
	forward.FlushInterval = -1
	s.mux.Handle("/", forward)
	s.mux.Handle("/exec/{namespace}/{pod}/{container}", s.orElse(forward, s.serveExec))
	s.mux.Handle("/portForward/{namespace}/{pod}", s.orElse(forward, s.servePortForward))
	return s
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// target is a Pod of a driver, and the container that a request is for.
type target struct {
	name, container string
	mounts          []mount
}

// orElse serves requests for Pods of drivers, and leaves the others to another handler.
func (s *Server) orElse(others http.Handler, serve func(http.ResponseWriter, *http.Request, target)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		found, err := s.targetOf(r)
		switch {
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		case len(found.mounts) == 0:
			others.ServeHTTP(w, r)
		default:
			w, r, end := untilDisconnect(w, r)
			defer end()
			serve(w, r, found)
		}
	})
}

// targetOf finds the Pod of a request. A Pod of a driver is one with hostPath volumes in the node's folder.
func (s *Server) targetOf(r *http.Request) (target, error) {
	namespace, name, container := r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container")
	pod, err := s.Client.CoreV1().Pods(namespace).Get(r.Context(), name, metav1.GetOptions{})
	if err != nil {
		return target{}, fmt.Errorf("get the Pod of a request: %w", err)
	}
	folder, err := s.folderOf(pod)
	if err != nil {
		return target{}, err
	}
	mounts := mountsOf(pod, container, folder)
	for _, m := range mounts { // as volumes of the type DirectoryOrCreate would
		if err := os.MkdirAll(m.local, 0o755); err != nil {
			return target{}, fmt.Errorf("make the folder of mount %s: %w", m.inside, err)
		}
	}
	return target{namespace + "/" + name, container, mounts}, nil
}

// folderOf returns the folder of a Pod's node. It resolves the link: paths of sockets have to be short.
func (s *Server) folderOf(pod *corev1.Pod) (string, error) {
	folder, err := filepath.EvalSymlinks(filepath.Join(s.Plugins, pod.Spec.NodeName))
	if errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("find the folder of node %s: kwok-dra has made none in %s", pod.Spec.NodeName, s.Plugins)
	}
	return folder, err
}

func (s *Server) serveExec(w http.ResponseWriter, r *http.Request, found target) {
	command := r.URL.Query()["command"]
	if len(command) == 0 {
		http.Error(w, "read the request: it has no command", http.StatusBadRequest)
		return
	}
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	run := executor(func(attached streams) error {
		return s.runCommand(r.Context(), found.name, found.mounts, command, attached)
	})
	remotecommand.ServeExec(w, r, run, found.name, "", found.container, command, options, idleTimeout, creationTimeout, remotecommand.SupportedStreamingProtocols)
}

func (s *Server) servePortForward(w http.ResponseWriter, r *http.Request, found target) {
	options, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	forward := forwarder(func(port int32, stream io.ReadWriteCloser) error {
		return s.proxies.forward(r.Context(), proxyID(found.name, port), stream)
	})
	portforward.ServePortForward(w, r, forward, found.name, "", options, idleTimeout, creationTimeout, portforward.SupportedProtocols)
}

// executor and forwarder are functions for the interfaces of the library.
type (
	executor  func(attached streams) error
	forwarder func(port int32, stream io.ReadWriteCloser) error
)

func (e executor) ExecInContainer(_ context.Context, _, _, _ string, _ []string, in io.Reader, out, err io.WriteCloser, _ bool, _ <-chan remotecommand.TerminalSize, _ time.Duration) error {
	attached := streams{in: in}
	if out != nil {
		attached.out = out
		defer func() { _ = out.Close() }() // a stream that ends otherwise may lose its last data
	}
	if err != nil {
		attached.err = err
		defer func() { _ = err.Close() }()
	}
	return e(attached)
}

func (f forwarder) PortForward(_ context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	defer func() { _ = stream.Close() }()
	return f(port, stream)
}

// Serve answers on a listener until ctx ends, by TLS as a kubelet.
func (s *Server) Serve(ctx context.Context, listener net.Listener, certificate tls.Certificate) error {
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: creationTimeout,
		// SPDY takes over connections of HTTP/1.1 alone.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
		TLSConfig:    &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		BaseContext:  func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.ServeTLS(listener, "", ""); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}
