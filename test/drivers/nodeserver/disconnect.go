package nodeserver

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
)

// untilDisconnect returns a request whose context ends when the client disconnects. Nobody else notices that
// once a connection was taken over for streams: the server of package http no longer reads it, and the library
// for streams stops reading when the client has reset them.
func untilDisconnect(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, *http.Request, context.CancelFunc) {
	ctx, cancel := context.WithCancel(r.Context())
	return &disconnectWriter{w, ctx, cancel}, r.WithContext(ctx), cancel
}

type disconnectWriter struct {
	http.ResponseWriter
	ctx    context.Context
	cancel context.CancelFunc
}

func (w *disconnectWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Hijack returns a connection that is read ahead.
func (w *disconnectWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	connection, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, fmt.Errorf("take over the connection: %w", err)
	}
	ahead := &readAhead{Conn: connection, chunks: make(chan []byte, chunksAhead)}
	go func() {
		ahead.pump(w.ctx, buffered.Reader)
		w.cancel()
	}()
	return ahead, bufio.NewReadWriter(bufio.NewReader(ahead), bufio.NewWriter(ahead)), nil
}

// chunksAhead is more than a client sends after it has reset its streams.
const chunksAhead = 64

// readAhead is a connection that is read even if nobody wants to read it.
type readAhead struct {
	net.Conn
	chunks chan []byte
	unread []byte
}

// pump reads until the connection ends.
func (c *readAhead) pump(ctx context.Context, from io.Reader) {
	defer close(c.chunks)
	for {
		chunk := make([]byte, 32<<10)
		n, err := from.Read(chunk)
		if n > 0 {
			select {
			case c.chunks <- chunk[:n]:
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (c *readAhead) Read(p []byte) (int, error) {
	if len(c.unread) == 0 {
		chunk, ok := <-c.chunks
		if !ok {
			return 0, io.EOF
		}
		c.unread = chunk
	}
	n := copy(p, c.unread)
	c.unread = c.unread[n:]
	return n, nil
}
