package app

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/extensions/webpage/page"
)

// pipes is a listener within a bubble, whose clock the limits go by.
type pipes struct {
	opened chan net.Conn
	closed context.Context
	close  func()
}

func newPipes() *pipes {
	ctx, cancel := context.WithCancel(context.Background())
	return &pipes{make(chan net.Conn), ctx, cancel}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case connection := <-p.opened:
		return connection, nil
	case <-p.closed.Done():
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.close(); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// dial connects, and sends a text.
func (p *pipes) dial(t *testing.T, text string) net.Conn {
	t.Helper()
	client, server := net.Pipe()
	p.opened <- server
	_, err := io.WriteString(client, text)
	require.NoError(t, err)
	return client
}

// listen serves within a bubble, until the test ends.
func listen(t *testing.T, handler http.Handler) *pipes {
	t.Helper()
	ctx, cancel := context.WithCancel(quiet(t))
	listener := newPipes()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		(&server{listener: listener, handler: handler}).runServer(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-stopped
	})
	return listener
}

// hungUp is how long it takes until the server hangs up on a client that does
// nothing more.
func hungUp(t *testing.T, client net.Conn) time.Duration {
	t.Helper()
	began := time.Now() // by the bubble's clock
	_, err := io.Copy(io.Discard, client)
	require.NoError(t, err)
	return time.Since(began)
}

const ask = "GET /healthz HTTP/1.1\r\nHost: a\r\n"

// TestServerHangsUpOnSilentClients: none holds a connection for ever, before,
// within and after a request.
func TestServerHangsUpOnSilentClients(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		sent  string
		limit time.Duration
	}{
		"before the request":         {"", headerTimeout},
		"within the headers":         {ask, headerTimeout},
		"before the body":            {ask + "Content-Length: 10\r\n\r\n", requestTimeout},
		"within the body":            {ask + "Content-Length: 10\r\n\r\n12345", requestTimeout},
		"within a body without size": {ask + "Transfer-Encoding: chunked\r\n\r\n5\r\n12", requestTimeout},
		"after the answer":           {ask + "\r\n", idleTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client := listen(t, (&site{}).newHandler()).dial(t, test.sent)
				require.LessOrEqual(t, hungUp(t, client), test.limit+time.Second)
			})
		})
	}
}

// TestServerGivesUpOnClientsThatDoNotRead: the handler does not wait for them.
func TestServerGivesUpOnClientsThatDoNotRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now() // by the bubble's clock
		ended := make(chan error, 1)
		client := listen(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, err := io.WriteString(w, strings.Repeat("x", 1<<20))
			ended <- err
		})).dial(t, ask+"\r\n")
		_, err := io.ReadFull(client, make([]byte, 1000))
		require.NoError(t, err)
		require.Error(t, <-ended)
		require.LessOrEqual(t, time.Since(began), requestTimeout+time.Second)
	})
}

// TestServerRefusesEndlessHeaders: they do not fill the memory.
func TestServerRefusesEndlessHeaders(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := listen(t, http.NotFoundHandler()).dial(t, ask)
		sent := make(chan error)
		go func() {
			_, err := io.WriteString(client, "Authorization: Bearer "+strings.Repeat("x", 4*maxHeaderBytes))
			sent <- err
		}()
		response, err := http.ReadResponse(bufio.NewReader(client), nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, response.StatusCode)
		require.NoError(t, response.Body.Close())
		require.NoError(t, client.Close())
		require.Error(t, <-sent)
	})
}

// TestServerLetsThePageWait: a request waits for a change for as long as the page
// wants, again and again on one connection.
func TestServerLetsThePageWait(t *testing.T) {
	t.Parallel()
	source := &inventory.Source{
		Nodes:       func() []string { return []string{"n"} },
		Slices:      func() []inventory.Slice { return nil },
		Allocations: func() []inventory.Allocation { return nil },
		Changes:     func() uint64 { return 0 },
	}
	synctest.Test(t, func(t *testing.T) {
		client := listen(t, page.New(page.Options{Source: source})).dial(t, "")
		answers := bufio.NewReader(client)
		get := func(path string) *http.Response {
			_, err := io.WriteString(client, "GET "+path+" HTTP/1.1\r\nHost: a\r\n\r\n")
			require.NoError(t, err)
			response, err := http.ReadResponse(answers, nil)
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, response.Body)
			require.NoError(t, err)
			return response
		}
		tag := get("/api/devices").Header.Get("ETag")
		revision := strings.Trim(strings.TrimPrefix(tag, "W/"), `"`)
		for range 10 {
			require.Equal(t, http.StatusNoContent, get("/api/devices?since="+revision).StatusCode)
		}
		require.NoError(t, client.Close())
	})
}
