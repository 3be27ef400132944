package plugin

import (
	"context"
	"sync"

	"github.com/kwok-dra/kwok-dra/pkg/kubelet/root"
)

// Sockets are those through which the plugins of a Set register, as long as they are there.
type Sockets struct {
	set     *Set
	served  map[string]served
	running sync.WaitGroup
}

// served is a socket that a plugin registers through.
type served struct {
	root.Socket
	stop context.CancelFunc
}

// NewSockets knows none yet.
func NewSockets(set *Set) *Sockets {
	return &Sockets{set: set, served: map[string]served{}}
}

// Sync begins to serve sockets that are new, and ends with those that have gone. All ends with
// ctx.
func (s *Sockets) Sync(ctx context.Context, found []root.Socket) {
	there := map[string]root.Socket{}
	for _, socket := range found {
		there[socket.Path] = socket
	}
	for path, known := range s.served {
		if socket, ok := there[path]; !ok || !known.Is(socket) {
			known.stop()
			delete(s.served, path)
		}
	}
	for path, socket := range there {
		if _, known := s.served[path]; known {
			continue
		}
		serving, stop := context.WithCancel(ctx)
		s.served[path] = served{socket, stop}
		s.running.Go(func() { s.set.Serve(serving, path) })
	}
}

// Wait waits, after the end of ctx, until none is served.
func (s *Sockets) Wait() { s.running.Wait() }
