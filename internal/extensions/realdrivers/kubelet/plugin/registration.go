package plugin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	registrationv1 "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/root"
)

// The limits and the backoff of the kubelet (operation_generator.go in
// pkg/kubelet/pluginmanager/operationexecutor, exponential_backoff.go in
// pkg/util/goroutinemap).
const (
	dialTimeout    = 10 * time.Second
	infoTimeout    = time.Second
	notifyTimeout  = 5 * time.Second
	firstRetry     = 500 * time.Millisecond
	lastRetry      = 2*time.Minute + 2*time.Second
	retriesToLimit = 9
)

// Serve registers the plugin behind a socket, retries until that succeeds, and unregisters the plugin when ctx ends.
func (s *Set) Serve(ctx context.Context, socket string) {
	backoff := wait.Backoff{Duration: firstRetry, Factor: 2, Steps: retriesToLimit, Cap: lastRetry}
	for ctx.Err() == nil {
		p, err := s.registerPlugin(ctx, socket)
		if err == nil {
			<-ctx.Done()
			s.removePlugin(ctx, p)
			return
		}
		if ctx.Err() != nil {
			return
		}
		klog.FromContext(ctx).Info("Failed to register the DRA plugin; retrying", "socket", socket, "err", err)
		select {
		case <-ctx.Done():
		case <-time.After(backoff.Step()):
		}
	}
}

// registerPlugin takes the kubelet's steps, with its error texts (GenerateRegisterPluginFunc).
func (s *Set) registerPlugin(ctx context.Context, socket string) (*Plugin, error) {
	conn, err := dialSocket(ctx, socket)
	if err != nil {
		return nil, fmt.Errorf("RegisterPlugin error -- dial failed at socket %s, err: %w", socket, err)
	}
	defer func() { _ = conn.Close() }() // all answers have been received
	client := registrationv1.NewRegistrationClient(conn)
	info, err := getInfo(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("RegisterPlugin error -- failed to get plugin info using RPC GetInfo at socket %s, err: %w", socket, err)
	}
	p, refused, err := s.admitPlugin(ctx, socket, info)
	if err := notifyPlugin(ctx, client, refused); err != nil {
		if p != nil {
			s.removePlugin(ctx, p)
		}
		return nil, fmt.Errorf("RegisterPlugin error -- failed to send registration status at socket %s, err: %w", socket, err)
	}
	return p, err
}

func getInfo(ctx context.Context, client registrationv1.RegistrationClient) (*registrationv1.PluginInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, infoTimeout)
	defer cancel()
	return client.GetInfo(ctx, &registrationv1.InfoRequest{})
}

// admitPlugin adds a plugin to the Set. If it does not, refused is the text for the plugin, and err the one for the log.
func (s *Set) admitPlugin(ctx context.Context, socket string, info *registrationv1.PluginInfo) (p *Plugin, refused string, err error) {
	refuse := func(format string, arguments ...any) (*Plugin, string, error) {
		err := fmt.Errorf("RegisterPlugin error -- "+format, arguments...)
		return nil, err.Error(), err
	}
	if info.Type != registrationv1.DRAPlugin {
		return refuse("no handler registered for plugin type: %s at socket %s", info.Type, socket)
	}
	if info.Name == "" {
		return refuse("plugin validation failed with err: %w", errors.New("DRA driver name is empty"))
	}
	if info.Endpoint == "" {
		info.Endpoint = socket
	}
	endpoint, err := s.options.Endpoint(info.Endpoint)
	if err != nil {
		return refuse("plugin validation failed with err: %w", err)
	}
	if p, err = newPlugin(info, endpoint, s.setConnected, &s.options); err != nil {
		return refuse("plugin validation failed with err: %w", err)
	}
	if err := s.addPlugin(ctx, p); err != nil {
		_ = p.conn.Close() // never used
		return refuse("plugin registration failed with err: %w", err)
	}
	return p, "", nil
}

// notifyPlugin sends a plugin the result of its registration.
func notifyPlugin(ctx context.Context, client registrationv1.RegistrationClient, refused string) error {
	ctx, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()
	_, err := client.NotifyRegistrationStatus(ctx, &registrationv1.RegistrationStatus{PluginRegistered: refused == "", Error: refused})
	return err
}

// dialSocket connects to a socket, and waits for the connection.
func dialSocket(ctx context.Context, socket string) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return root.DialSocket(ctx, socket) }))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn.Connect()
	for state := conn.GetState(); state != connectivity.Ready; state = conn.GetState() {
		if !conn.WaitForStateChange(ctx, state) {
			return nil, errors.Join(fmt.Errorf("failed to dial socket %s: %w", socket, ctx.Err()), conn.Close())
		}
	}
	return conn, nil
}
