package plugin

import (
	"context"
	"sync"

	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/root"
)

// Sockets serves the sockets through which the plugins of a Set register, while these exist.
type Sockets struct {
	set     *Set
	served  map[string]served
	running sync.WaitGroup
}

// served is a socket that is being served.
type served struct {
	root.Socket
	stop context.CancelFunc
}

// NewSockets returns Sockets that serve none yet.
func NewSockets(set *Set) *Sockets {
	return &Sockets{set: set, served: map[string]served{}}
}

// Sync starts serving new sockets, and stops serving those that are gone. All serving ends with ctx.
func (s *Sockets) Sync(ctx context.Context, found []root.Socket) {
	present := map[string]root.Socket{}
	for _, socket := range found {
		present[socket.Path] = socket
	}
	for path, known := range s.served {
		if socket, ok := present[path]; !ok || !known.Is(socket) {
			known.stop()
			delete(s.served, path)
		}
	}
	for path, socket := range present {
		if _, known := s.served[path]; known {
			continue
		}
		serving, stop := context.WithCancel(ctx)
		s.served[path] = served{socket, stop}
		s.running.Go(func() { s.set.Serve(serving, path) })
	}
}

// Wait waits until no socket is served any more, after ctx has ended.
func (s *Sockets) Wait() { s.running.Wait() }
