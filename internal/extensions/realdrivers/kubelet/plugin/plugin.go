package plugin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	healthv1 "k8s.io/kubelet/pkg/apis/dra-health/v1"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"
	drav1beta1 "k8s.io/kubelet/pkg/apis/dra/v1beta1"
	registrationv1 "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/root"
)

// CallTimeout bounds a call of a plugin (defaultClientCallTimeout in pkg/kubelet/cm/dra/plugin).
const CallTimeout = 45 * time.Second

// reconnectInterval is the least time between two connections to a plugin (the base delay of
// gRPC's backoff).
const reconnectInterval = time.Second

// maxFailureLength bounds the text of a plugin's failure, in bytes. It is in the events of waiting Pods, in the log and on
// the page, and a plugin may send megabytes.
const maxFailureLength = 4 << 10

// Plugin is a registered plugin of a driver.
type Plugin struct {
	Driver, Endpoint string

	client drav1.DRAPluginClient
	conn   *grpc.ClientConn
	// hasHealthV1 says that the plugin reports health by v1, not by v1alpha1.
	hasHealthV1 bool
	// connected belongs to the Set.
	connected bool
	health    health

	// stop ends the goroutines of running, which the Set starts when it adds the plugin.
	stop    context.CancelFunc
	running sync.WaitGroup
}

// newPlugin returns a plugin that gRPC connects to in the background until its connection is closed.
func newPlugin(info *registrationv1.PluginInfo, endpoint string, connected func(p *Plugin, is bool), o *Options) (*Plugin, error) {
	service, err := chooseService(info.SupportedVersions)
	if err != nil {
		return nil, fmt.Errorf("invalid supported gRPC versions of DRA driver plugin %s at endpoint %s: %w", info.Name, info.Endpoint, err)
	}
	p := &Plugin{Driver: info.Name, Endpoint: endpoint, hasHealthV1: slices.Contains(info.SupportedVersions, healthv1.DRAResourceHealthService)}
	var nextDial time.Time // gRPC dials one at a time
	p.conn, err = grpc.NewClient("unix:"+endpoint,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithChainUnaryInterceptor(o.Calls),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			select { // dial a plugin that drops connections no more often than one that refuses them
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(time.Until(nextDial)):
			}
			nextDial = time.Now().Add(reconnectInterval)
			socket, err := o.Endpoint(endpoint) // another file may be there since the registration
			if err != nil {
				return nil, err
			}
			return root.DialSocket(ctx, socket)
		}),
		grpc.WithStatsHandler(monitor(func(is bool) { connected(p, is) })))
	if err != nil {
		return nil, fmt.Errorf("create gRPC connection to DRA driver %s plugin at endpoint %s: %w", info.Name, endpoint, err)
	}
	p.client = drav1.NewDRAPluginClient(p.conn)
	if service == drav1beta1.DRAPluginService {
		p.client = drav1beta1.V1Beta1ClientWrapper{DRAPluginClient: drav1beta1.NewDRAPluginClient(p.conn)}
	}
	return p, nil
}

// keepConnected connects again until ctx ends, even without calls. By itself gRPC would wait for the next call.
func (p *Plugin) keepConnected(ctx context.Context) {
	for {
		if state := p.conn.GetState(); state != connectivity.Idle {
			if !p.conn.WaitForStateChange(ctx, state) {
				return
			}
			continue
		}
		p.conn.Connect()
		select {
		case <-ctx.Done():
			return
		case <-time.After(reconnectInterval):
		}
	}
}

// supported lists the gRPC services that kwok-dra can call, the newest first.
var supported = []string{drav1.DRAPluginService, drav1beta1.DRAPluginService}

// chooseService chooses the newest service that a plugin offers, in whatever order the plugin lists them.
func chooseService(offered []string) (string, error) {
	if len(offered) == 0 {
		return "", errors.New("empty list of supported gRPC services (aka supported versions)")
	}
	for _, service := range supported {
		if slices.Contains(offered, service) {
			return service, nil
		}
	}
	return "", fmt.Errorf("none of services supported by the plugin (%q) are supported by the kubelet (%q)", offered, supported)
}

// Prepare calls NodePrepareResources.
func (p *Plugin) Prepare(ctx context.Context, claims []*drav1.Claim) (*drav1.NodePrepareResourcesResponse, error) {
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, driverKey{}, p.Driver), CallTimeout)
	defer cancel()
	response, err := p.client.NodePrepareResources(ctx, &drav1.NodePrepareResourcesRequest{Claims: claims})
	for _, result := range response.GetClaims() {
		if result != nil {
			result.Error = truncateText(result.Error, maxFailureLength)
		}
	}
	return response, shortenError(err)
}

// Unprepare calls NodeUnprepareResources.
func (p *Plugin) Unprepare(ctx context.Context, claims []*drav1.Claim) (*drav1.NodeUnprepareResourcesResponse, error) {
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, driverKey{}, p.Driver), CallTimeout)
	defer cancel()
	response, err := p.client.NodeUnprepareResources(ctx, &drav1.NodeUnprepareResourcesRequest{Claims: claims})
	for _, result := range response.GetClaims() {
		if result != nil {
			result.Error = truncateText(result.Error, maxFailureLength)
		}
	}
	return response, shortenError(err)
}

// shortenError truncates a plugin's text in the error of a call.
func shortenError(err error) error {
	if said := status.Convert(err); len(said.Message()) > maxFailureLength {
		return status.Error(said.Code(), truncateText(said.Message(), maxFailureLength))
	}
	return err
}

type driverKey struct{}

// DriverOf returns the driver that a context's call is for.
func DriverOf(ctx context.Context) string {
	driver, _ := ctx.Value(driverKey{}).(string)
	return driver
}

// monitor is a stats handler that is called when a connection begins or ends.
type monitor func(connected bool)

// TagRPC implements stats.Handler.
func (monitor) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements stats.Handler.
func (monitor) HandleRPC(context.Context, stats.RPCStats) {}

// TagConn implements stats.Handler.
func (monitor) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (m monitor) HandleConn(_ context.Context, event stats.ConnStats) {
	switch event.(type) {
	case *stats.ConnBegin:
		m(true)
	case *stats.ConnEnd:
		m(false)
	}
}
