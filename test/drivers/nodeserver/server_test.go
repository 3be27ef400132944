package nodeserver

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
)

// node is a server with the folder of one node, and a driver's Pod there.
type node struct {
	url    *url.URL
	folder string
}

func newNode(t *testing.T) node {
	t.Helper()
	plugins, err := os.MkdirTemp("", "p") //nolint:usetesting // paths of sockets have to be short
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(plugins)) })
	folder := filepath.Join(plugins, "A0")
	require.NoError(t, os.Mkdir(folder, 0o700))
	require.NoError(t, os.Symlink("A0", filepath.Join(plugins, "node-0")))

	kwok := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "kwok "+r.URL.Path)
	}))
	t.Cleanup(kwok.Close)
	behind, err := url.Parse(kwok.URL)
	require.NoError(t, err)

	other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "other"}, Spec: corev1.PodSpec{NodeName: "node-0"}}
	client := fake.NewClientset(newDriverPod(), other)
	server := httptest.NewServer(New(Options{Client: client, Plugins: plugins, Kwok: behind}))
	t.Cleanup(server.Close)
	address, err := url.Parse(server.URL)
	require.NoError(t, err)
	return node{address, folder}
}

// exec runs a command in the driver's container, as the API server asks for it.
func (n node) exec(ctx context.Context, command ...string) (string, error) {
	target := n.url.JoinPath("exec", "default", "driver", "pause")
	target.RawQuery = url.Values{"command": command, "output": {"1"}, "error": {"1"}}.Encode()
	executor, err := remotecommand.NewSPDYExecutor(&rest.Config{}, http.MethodPost, target)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out, Stderr: io.Discard})
	return out.String(), err
}

func TestExecWorksInTheFolderOfTheNode(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	_, err := n.exec(t.Context(), "sh", "-c", "base64 -d >'/cdi/spec.json.tmp' <<EOF\ne30=\nEOF")
	require.NoError(t, err)
	_, err = n.exec(t.Context(), "mv", "/cdi/spec.json.tmp", "/cdi/spec.json")
	require.NoError(t, err)
	content, err := os.ReadFile(filepath.Join(n.folder, "run", "cdi", "spec.json"))
	require.NoError(t, err)
	require.Equal(t, "{}", string(content))
	out, err := n.exec(t.Context(), "cat", "/cdi/spec.json")
	require.NoError(t, err)
	require.Equal(t, "{}", out)
	_, err = n.exec(t.Context(), "rm", "-rf", "/cdi/spec.json")
	require.NoError(t, err)
	_, err = n.exec(t.Context(), "cat", "/cdi/spec.json")
	require.ErrorContains(t, err, "exit code 1")
}

func TestOtherPodsAreKwoks(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	for _, path := range []string{"/exec/default/other/main", "/portForward/default/other", "/containerLogs/default/driver/pause"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, n.url.JoinPath(path).String(), http.NoBody)
		require.NoError(t, err)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		content, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, "kwok "+path, string(content))
	}
}

// forward forwards a local port to one of the driver's Pod, and returns the address.
func (n node) forward(t *testing.T, port string) string {
	t.Helper()
	transport, upgrader, err := spdy.RoundTripperFor(&rest.Config{})
	require.NoError(t, err)
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, n.url.JoinPath("portForward", "default", "driver"))
	stop, ready := make(chan struct{}), make(chan struct{})
	forwarder, err := portforward.New(dialer, []string{"0:" + port}, stop, ready, io.Discard, io.Discard)
	require.NoError(t, err)
	var running sync.WaitGroup
	running.Go(func() { _ = forwarder.ForwardPorts() }) // its connections end first, which it reports
	t.Cleanup(func() {
		close(stop)
		running.Wait()
	})
	<-ready
	ports, err := forwarder.GetPorts()
	require.NoError(t, err)
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(int(ports[0].Local)))
}

// TestLongSocketPath: a name that fits into the path of a container may not fit into that of the node's folder.
func TestLongSocketPath(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	name := strings.Repeat("d", 80) + ".sock"
	socket := filepath.Join(n.folder, "plugins_registry", name)
	require.Greater(t, len(socket), 108)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		_, _ = n.exec(ctx, "/hostpathplugin", "--endpoint=/var/lib/kubelet/plugins_registry/"+name, "--proxy-endpoint=tcp://:9001")
	})
	require.Eventually(t, func() bool { _, err := os.Stat(socket); return err == nil }, 10*time.Second, 10*time.Millisecond)
	cancel()
	running.Wait()
	require.Eventually(t, func() bool { _, err := os.Stat(socket); return os.IsNotExist(err) }, 10*time.Second, 10*time.Millisecond)
}

// TestSocketIsReachedByPort: the driver's server is behind the forwarded port, and its client, a kubelet, at
// the socket.
func TestSocketIsReachedByPort(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		_, _ = n.exec(ctx, "/hostpathplugin", "--v=5", "--endpoint=/var/lib/kubelet/plugins_registry/d-reg.sock", "--proxy-endpoint=tcp://:9001")
	})
	socket := filepath.Join(n.folder, "plugins_registry", "d-reg.sock")
	require.Eventually(t, func() bool { _, err := os.Stat(socket); return err == nil }, 10*time.Second, 10*time.Millisecond)

	var dialer net.Dialer
	driver, err := dialer.DialContext(t.Context(), "tcp", n.forward(t, "9001"))
	require.NoError(t, err)
	defer func() { _ = driver.Close() }()
	kubelet, err := dialer.DialContext(t.Context(), "unix", socket)
	require.NoError(t, err)
	defer func() { _ = kubelet.Close() }()
	exchange(t, kubelet, driver, "prepare")
	exchange(t, driver, kubelet, "prepared")
	require.NoError(t, driver.Close())
	_, err = kubelet.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "both sides end together")

	cancel()
	running.Wait()
	require.Eventually(t, func() bool { _, err := os.Stat(socket); return os.IsNotExist(err) }, 10*time.Second, 10*time.Millisecond, "the program ends with its client")
}

func exchange(t *testing.T, from, to net.Conn, text string) {
	t.Helper()
	_, err := io.WriteString(from, text)
	require.NoError(t, err)
	got := make([]byte, len(text))
	_, err = io.ReadFull(to, got)
	require.NoError(t, err)
	require.Equal(t, text, string(got))
}

func TestProxyEndpoints(t *testing.T) {
	t.Parallel()
	_, err := parseEndpoints([]string{"--endpoint=/a.sock"})
	require.EqualError(t, err, "read the arguments of hostpathplugin: want --endpoint=PATH and --proxy-endpoint=tcp://:PORT")
	_, err = parseEndpoints([]string{"--endpoint=/a.sock", "--proxy-endpoint=tcp://"})
	require.ErrorContains(t, err, `read the port of --proxy-endpoint "tcp://"`)
	got, err := parseEndpoints([]string{"-endpoint=unix:///a.sock", "--proxy-endpoint=tcp://:9001", "--drivername=x"})
	require.NoError(t, err)
	require.Equal(t, endpoints{"/a.sock", 9001}, got)
}
