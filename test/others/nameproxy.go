package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// nameProxy is an HTTP proxy through which programs reach servers of this machine by names
// that no resolver knows. It passes TLS on as it is, so the servers' certificates need
// these names.
type nameProxy struct {
	http.Server
	url string
	// addresses are those of the servers by name and port, such as "control-plane:6443".
	addresses map[string]string
}

func startNameProxy(addresses map[string]string) (*nameProxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen as a proxy: %w", err)
	}
	p := &nameProxy{url: "http://" + listener.Addr().String(), addresses: addresses}
	p.Server = http.Server{Handler: http.HandlerFunc(p.connect), ReadHeaderTimeout: time.Minute}
	go func() { _ = p.Serve(listener) }()
	return p, nil
}

// connect joins a client with the server that it names. The connection ends with either of them.
func (p *nameProxy) connect(w http.ResponseWriter, r *http.Request) {
	address, isKnown := p.addresses[r.Host]
	if r.Method != http.MethodConnect || !isKnown {
		http.Error(w, fmt.Sprintf("%s %s: this proxy connects to servers of its own only", r.Method, r.Host), http.StatusNotFound)
		return
	}
	server, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", address)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer func() { _ = server.Close() }()
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer func() { _ = client.Close() }()
	if _, err := io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(server, buffered)
		_ = server.Close()
	}()
	_, _ = io.Copy(client, server)
}
