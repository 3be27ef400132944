package world

import (
	"net"
	"strconv"
)

const (
	// usualPort is that of kwok-dra's page by default.
	usualPort = 10246
	// anyPort has the system choose one.
	anyPort = 0
)

// preferredPort is the usual port where it is free, and any otherwise: another
// user, or another checkout, may have a demo of its own.
func preferredPort() int {
	listener, err := net.Listen("tcp", loopbackAddress(usualPort))
	if err != nil {
		return anyPort
	}
	_ = listener.Close()
	return usualPort
}

// loopbackAddress is an address that other machines cannot reach.
func loopbackAddress(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
