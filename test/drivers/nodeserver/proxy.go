package nodeserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// A proxy joins connections to a driver's socket with streams of kubectl port-forward, one with one, as
// hostpathplugin does with --proxy-endpoint.
type proxy struct {
	// streams come from port-forward, and wait here for connections to the socket.
	streams chan io.ReadWriteCloser
	done    chan struct{}
}

// proxies are those that run, by the Pod and the port.
type proxies struct {
	mu   sync.Mutex
	byID map[string]*proxy
}

func proxyID(pod string, port int32) string { return fmt.Sprintf("%s:%d", pod, port) }

// listen serves a socket until ctx ends or the socket fails, and removes it then.
func (p *proxies) listen(ctx context.Context, id, socket string) error {
	added := &proxy{streams: make(chan io.ReadWriteCloser), done: make(chan struct{})}
	if err := p.add(id, added); err != nil {
		return err
	}
	defer p.remove(id, added)
	// One that was killed leaves its socket behind.
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the former socket: %w", err)
	}
	folder, err := os.Open(filepath.Dir(socket))
	if err != nil {
		return fmt.Errorf("open the folder of the driver's socket: %w", err)
	}
	defer func() { _ = folder.Close() }()
	// The path of a container is shorter than the one here, which may be longer than sun_path of unix(7).
	listener, err := net.Listen("unix", fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), filepath.Base(socket)))
	if err != nil {
		return fmt.Errorf("listen on the driver's socket: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	defer func() { _ = listener.Close() }()
	var joined sync.WaitGroup
	defer joined.Wait()
	for {
		connection, err := listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("accept a connection to %s: %w", socket, err)
		}
		joined.Go(func() { added.join(ctx, connection) })
	}
}

func (p *proxies) add(id string, added *proxy) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byID[id] != nil {
		return fmt.Errorf("listen on port %s: it is in use", id[strings.LastIndex(id, ":")+1:])
	}
	p.byID[id] = added
	return nil
}

func (p *proxies) remove(id string, added *proxy) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byID, id)
	close(added.done)
}

// forward offers a stream to the proxy of a port, and returns when the stream has ended.
func (p *proxies) forward(ctx context.Context, id string, stream io.ReadWriteCloser) error {
	p.mu.Lock()
	found := p.byID[id]
	p.mu.Unlock()
	if found == nil {
		return errors.New("connection refused")
	}
	ended := &closeNotifier{ReadWriteCloser: stream, closed: make(chan struct{})}
	select {
	case found.streams <- ended:
	case <-found.done:
		return nil
	case <-ctx.Done(): // the client has gone
		return nil
	}
	<-ended.closed
	return nil
}

// closeNotifier says when a stream has been closed.
type closeNotifier struct {
	io.ReadWriteCloser
	once   sync.Once
	closed chan struct{}
}

func (c *closeNotifier) Close() error {
	err := c.ReadWriteCloser.Close()
	c.once.Do(func() { close(c.closed) })
	return err
}

// join waits for a stream, and copies between it and a connection until either ends.
func (p *proxy) join(ctx context.Context, connection net.Conn) {
	defer func() { _ = connection.Close() }()
	var stream io.ReadWriteCloser
	select {
	case stream = <-p.streams:
	case <-ctx.Done():
		return
	}
	defer func() { _ = stream.Close() }()
	ended := make(chan struct{}, 2)
	go copyUntilEnd(stream, connection, ended)
	go copyUntilEnd(connection, stream, ended)
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// copyUntilEnd ignores errors: the other side ends with this one.
func copyUntilEnd(to io.Writer, from io.Reader, ended chan<- struct{}) {
	_, _ = io.Copy(to, from)
	ended <- struct{}{}
}
