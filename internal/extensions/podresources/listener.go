package podresources

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

const (
	// folderName and socketName are those below a kubelet's root directory.
	folderName = "pod-resources"
	socketName = "kubelet.sock"
	// maxConnections is how many connections to a socket stay open. One more closes the oldest, so a client that opens
	// connections without end keeps nobody out.
	maxConnections = 64
)

// listenBelow makes the socket of a node below its folder, in place of one that was left there. The folder belongs to a node's
// drivers too: a link in it leads nowhere.
func listenBelow(root string) (*listener, error) {
	path := filepath.Join(root, folderName)
	if err := os.Mkdir(path, 0o755); err != nil && !os.IsExist(err) {
		return nil, fmt.Errorf("make the folder of the PodResources socket: %w", err)
	}
	folder, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w: it must be a folder", path, err)
	}
	defer func() { _ = syscall.Close(folder) }() // it was only read
	// By this path the socket is in the folder that was opened, and its name is never longer than sun_path of unix(7).
	socket := fmt.Sprintf("/proc/self/fd/%d/%s", folder, socketName)
	if info, err := os.Lstat(socket); err == nil && info.Mode().Type() != os.ModeSocket {
		return nil, fmt.Errorf("listen at %s: there is something else: remove it", filepath.Join(path, socketName))
	}
	if err := os.Remove(socket); err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("remove the old socket %s: %w", filepath.Join(path, socketName), err)
	}
	made, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen at %s: %w", filepath.Join(path, socketName), err)
	}
	made.SetUnlinkOnClose(false) // the descriptor may be another folder's by then
	return &listener{Listener: made, path: filepath.Join(path, socketName)}, nil
}

// listener accepts the connections to one socket.
type listener struct {
	net.Listener

	path string
	mu   sync.Mutex
	open []*connection
}

// connection leaves the list of its listener when it ends.
type connection struct {
	net.Conn

	listener *listener
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	made := &connection{accepted, l}
	l.mu.Lock()
	l.open = append(l.open, made)
	var oldest *connection
	if len(l.open) > maxConnections {
		oldest, l.open = l.open[0], l.open[1:]
	}
	l.mu.Unlock()
	if oldest != nil {
		_ = oldest.Conn.Close() // its client is told by that
	}
	return made, nil
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.listener.mu.Lock()
	for i, open := range c.listener.open {
		if open == c {
			c.listener.open = append(c.listener.open[:i], c.listener.open[i+1:]...)
			break
		}
	}
	c.listener.mu.Unlock()
	return c.Conn.Close()
}
