package nodeserver

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
)

// untilDisconnect returns a request whose context ends when the client disconnects. The server of
// package http no longer notices that once a connection was taken over for streams.
func untilDisconnect(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, *http.Request, context.CancelFunc) {
	ctx, cancel := context.WithCancel(r.Context())
	return &disconnectWriter{w, cancel}, r.WithContext(ctx), cancel
}

type disconnectWriter struct {
	http.ResponseWriter
	cancel context.CancelFunc
}

func (w *disconnectWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *disconnectWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	connection, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, fmt.Errorf("take over the connection: %w", err)
	}
	watched := &disconnectConn{connection, w.cancel}
	first := io.LimitReader(buffered.Reader, int64(buffered.Reader.Buffered()))
	return watched, bufio.NewReadWriter(bufio.NewReader(io.MultiReader(first, watched)), bufio.NewWriter(watched)), nil
}

// disconnectConn tells when it can no longer be read.
type disconnectConn struct {
	net.Conn
	cancel context.CancelFunc
}

func (c *disconnectConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		c.cancel()
	}
	return n, err
}
