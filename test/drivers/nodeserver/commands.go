package nodeserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os/exec"
	"path"
	"strconv"
	"strings"
)

// socketProxy is the program of github.com/kubernetes-csi/csi-driver-host-path that tests open a driver's
// sockets with.
const socketProxy = "hostpathplugin"

// endpoints are what the program is to join: a socket in the container and a port of the Pod.
type endpoints struct {
	socket string
	port   int32
}

// parseEndpoints reads the program's arguments; it ignores those that do not concern the proxy.
func parseEndpoints(arguments []string) (endpoints, error) {
	var parsed endpoints
	for _, argument := range arguments {
		name, value, _ := strings.Cut(strings.TrimLeft(argument, "-"), "=")
		switch name {
		case "endpoint":
			parsed.socket = strings.TrimPrefix(value, "unix://")
		case "proxy-endpoint":
			address, err := url.Parse(value)
			if err != nil {
				return parsed, fmt.Errorf("read --proxy-endpoint %q: %w", value, err)
			}
			port, err := strconv.ParseInt(address.Port(), 10, 32)
			if err != nil {
				return parsed, fmt.Errorf("read the port of --proxy-endpoint %q: %w", value, err)
			}
			parsed.port = int32(port)
		}
	}
	if parsed.socket == "" || parsed.port == 0 {
		return parsed, fmt.Errorf("read the arguments of %s: want --endpoint=PATH and --proxy-endpoint=tcp://:PORT", socketProxy)
	}
	return parsed, nil
}

// streams are those of a command.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// runCommand runs a command of a driver's container: the program for sockets here, and any other one as a
// local program, with the paths of mounts replaced in its arguments.
func (s *Server) runCommand(ctx context.Context, pod string, mounts []mount, command []string, attached streams) error {
	if path.Base(command[0]) == socketProxy {
		wanted, err := parseEndpoints(command[1:])
		if err != nil {
			return err
		}
		return s.proxies.listen(ctx, proxyID(pod, wanted.port), translate(wanted.socket, mounts))
	}
	arguments := make([]string, 0, len(command)-1)
	for _, argument := range command[1:] {
		arguments = append(arguments, translate(argument, mounts))
	}
	local := exec.CommandContext(ctx, path.Base(command[0]), arguments...)
	local.Stdin, local.Stdout, local.Stderr = attached.in, attached.out, attached.err
	err := local.Run()
	if exited, ok := errors.AsType[*exec.ExitError](err); ok {
		return exitError{exited}
	}
	return err
}

// exitError is how the library for exec wants to learn an exit code.
type exitError struct{ *exec.ExitError }

func (e exitError) ExitStatus() int { return e.ExitCode() }
