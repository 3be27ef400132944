package root

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/kwok-dra/kwok-dra/internal/extensions/util/untrusted"
)

const (
	// maxSockets bounds the sockets below plugins_registry that are served.
	maxSockets = 1000
	// maxRegistryEntries bounds the entries of a node's registry, including those of its folders.
	maxRegistryEntries = 10_000
	// dialTimeout bounds a connection attempt. The kernel accepts connections for a plugin.
	dialTimeout = time.Second
)

// Socket is a socket through which a plugin wants to register.
type Socket struct {
	Path string
	info fs.FileInfo
}

// Is reports whether both are the same socket, and not a later one of the name.
func (s Socket) Is(other Socket) bool {
	return s.Path == other.Path && os.SameFile(s.info, other.info) && s.info.ModTime().Equal(other.info.ModTime())
}

// Sockets lists the sockets in the registry and the folders in it, without symbolic links and names that begin with a dot
// (Watcher in pkg/kubelet/pluginmanager/pluginwatcher). Of too many sockets it lists the oldest, so a driver that floods the
// registry displaces no earlier one.
func (r *Root) Sockets() ([]Socket, error) {
	sockets, err := r.socketsIn(r.Registry(), new(maxRegistryEntries))
	if err != nil {
		return nil, fmt.Errorf("look for plugins of node %s: %w", r.Name, err)
	}
	if len(sockets) > maxSockets {
		slices.SortStableFunc(sockets, func(a, b Socket) int { return a.info.ModTime().Compare(b.info.ModTime()) })
		sockets = sockets[:maxSockets]
	}
	return sockets, nil
}

// socketsIn lists the sockets in a folder and below it, by name. Quota is how many more entries may be read. A folder that was
// just removed has none, unless it is the registry itself.
func (r *Root) socketsIn(folder string, quota *int) ([]Socket, error) {
	entries, err := untrusted.ReadDir(folder, *quota)
	if errors.Is(err, fs.ErrNotExist) && folder != r.Registry() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	*quota -= len(entries)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	var sockets []Socket
	for _, entry := range entries {
		path := filepath.Join(folder, entry.Name())
		switch {
		case strings.HasPrefix(entry.Name(), "."):
		case entry.IsDir():
			below, err := r.socketsIn(path, quota)
			if err != nil {
				return nil, err
			}
			sockets = append(sockets, below...)
		case entry.Type() == fs.ModeSocket:
			if info, err := entry.Info(); err == nil {
				sockets = append(sockets, Socket{path, info})
			}
		}
	}
	return sockets, nil
}

// HasPlugin reports whether a plugin may still listen at a socket in the registry.
func (r *Root) HasPlugin(ctx context.Context) bool {
	sockets, err := r.Sockets()
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist) // a plugin may be there
	}
	return slices.ContainsFunc(sockets, func(socket Socket) bool {
		ctx, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
		conn, err := DialSocket(ctx, socket.Path)
		if err != nil {
			return !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, fs.ErrNotExist)
		}
		_ = conn.Close() // nothing was sent
		return true
	})
}
