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

	"github.com/kwok-dra/kwok-dra/pkg/untrusted"
)

const (
	// mostSockets is how many sockets below plugins_registry are served.
	mostSockets = 1000
	// maxRegistered is how many entries the registry of a node may have, with all below it.
	maxRegistered = 10_000
	// dialTimeout is how long a plugin has to take a connection. The system does that for it.
	dialTimeout = time.Second
)

// Socket is a socket through which a plugin wants to register.
type Socket struct {
	Path string
	info fs.FileInfo
}

// Is reports whether another look has found the same socket, and not a later one of its
// name.
func (s Socket) Is(other Socket) bool {
	return s.Path == other.Path && os.SameFile(s.info, other.info) && s.info.ModTime().Equal(other.info.ModTime())
}

// Sockets are the sockets in the registry and the folders in it (Watcher in
// pkg/kubelet/pluginmanager/pluginwatcher). Names that begin with a dot and symbolic links are
// passed over. Of too many the oldest are left: a driver that floods the registry takes no socket from
// those that were there before.
func (r *Root) Sockets() ([]Socket, error) {
	sockets, err := r.socketsIn(r.Registry(), new(maxRegistered))
	if err != nil {
		return nil, fmt.Errorf("look for plugins of node %s: %w", r.Name, err)
	}
	if len(sockets) > mostSockets {
		slices.SortStableFunc(sockets, func(a, b Socket) int { return a.info.ModTime().Compare(b.info.ModTime()) })
		sockets = sockets[:mostSockets]
	}
	return sockets, nil
}

// socketsIn finds the sockets in a folder and below it, in the order of their names. Left is how many
// entries may still be looked at. What has just gone is passed over, but for the registry itself.
func (r *Root) socketsIn(folder string, left *int) ([]Socket, error) {
	entries, err := untrusted.ReadDir(folder, *left)
	if errors.Is(err, fs.ErrNotExist) && folder != r.Registry() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	*left -= len(entries)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	var sockets []Socket
	for _, entry := range entries {
		path := filepath.Join(folder, entry.Name())
		switch {
		case strings.HasPrefix(entry.Name(), "."):
		case entry.IsDir():
			below, err := r.socketsIn(path, left)
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

// HasPlugin reports whether a plugin still listens at any socket in the registry.
func (r *Root) HasPlugin(ctx context.Context) bool {
	sockets, err := r.Sockets()
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist) // there may be one
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
