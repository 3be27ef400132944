package root

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"syscall"
)

// DialSocket connects to a socket whose path may be longer than sun_path of unix(7). A driver that has the folder of its node
// mounted elsewhere knows the socket by a shorter path.
func DialSocket(ctx context.Context, socket string) (net.Conn, error) {
	if len(socket) <= LongestSocket {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	folder, err := syscall.Open(filepath.Dir(socket), syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open the folder of %s: %w", socket, err)
	}
	defer func() { _ = syscall.Close(folder) }() // it was only read
	return new(net.Dialer).DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s", folder, filepath.Base(socket)))
}
