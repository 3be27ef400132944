package plugin

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	healthv1alpha1 "k8s.io/kubelet/pkg/apis/dra-health/v1alpha1"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"
	drav1beta1 "k8s.io/kubelet/pkg/apis/dra/v1beta1"
	registrationv1 "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/root"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long something takes that will never happen.
const patience = time.Minute

// fake is a plugin.
type fake struct {
	registrationv1.UnsafeRegistrationServer
	drav1.UnsafeDRAPluginServer
	healthv1alpha1.UnsafeDRAResourceHealthServer
	info   *registrationv1.PluginInfo
	health chan *healthv1alpha1.NodeWatchResourcesResponse

	mu      sync.Mutex
	infoErr error
	// notifyErr is the answer to all that the plugin is told.
	notifyErr error
	// streams counts the open streams of health.
	streams  atomic.Int32
	told     []*registrationv1.RegistrationStatus
	prepared int
	// failure is what it says of each claim that it is asked to prepare, and of a call to
	// unprepare any.
	failure string
}

func (f *fake) GetInfo(context.Context, *registrationv1.InfoRequest) (*registrationv1.PluginInfo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.info, f.infoErr
}

func (f *fake) NotifyRegistrationStatus(_ context.Context, status *registrationv1.RegistrationStatus) (*registrationv1.RegistrationStatusResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told = append(f.told, status)
	return &registrationv1.RegistrationStatusResponse{}, f.notifyErr
}

func (f *fake) NodePrepareResources(_ context.Context, request *drav1.NodePrepareResourcesRequest) (*drav1.NodePrepareResourcesResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.prepared++
	response := &drav1.NodePrepareResourcesResponse{Claims: map[string]*drav1.NodePrepareResourceResponse{}}
	for _, claim := range request.GetClaims() {
		response.Claims[claim.GetUid()] = &drav1.NodePrepareResourceResponse{Error: f.failure}
	}
	return response, nil
}

func (f *fake) NodeUnprepareResources(context.Context, *drav1.NodeUnprepareResourcesRequest) (*drav1.NodeUnprepareResourcesResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return nil, errors.New("busy" + f.failure)
}

func (f *fake) NodeWatchResources(_ *healthv1alpha1.NodeWatchResourcesRequest, stream healthv1alpha1.DRAResourceHealth_NodeWatchResourcesServer) error {
	f.streams.Add(1)
	defer f.streams.Add(-1)
	for {
		select {
		case <-stream.Context().Done():
			return nil
		case report := <-f.health:
			if err := stream.Send(report); err != nil {
				return err
			}
		}
	}
}

// refusals are what the plugin has been told, "" for a registration.
func (f *fake) refusals() (all []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, status := range f.told {
		all = append(all, status.GetError())
	}
	return all
}

// world is a Set, and a folder for sockets.
type world struct {
	*testing.T
	*Set
	folder  string
	changes chan string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	folder, err := os.MkdirTemp("", "p") //nolint:usetesting // its paths are too long for sockets
	require.NoError(t, err)
	w := &world{T: t, folder: folder, changes: make(chan string, 100)}
	w.Set = NewSet(Options{
		Endpoint: func(named string) (string, error) {
			if filepath.Dir(named) != folder {
				return "", errors.New("must be below " + folder)
			}
			return named, nil
		},
		Changed:       func(string) {},
		HealthChanged: func(driver string) { w.changes <- driver },
		Calls: func(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
			return invoke(ctx, method, request, reply, conn, options...)
		},
	})
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(folder)) })
	return w
}

// plugin starts a plugin and serves its socket. It returns how to remove the socket and to stop
// the plugin.
func (w *world) plugin(name string, versions ...string) (f *fake, remove, stop func()) {
	w.Helper()
	f, socket, stop := w.listen(name, versions...)
	return f, w.serve(socket), stop
}

// listen starts a plugin. It returns its socket and how to stop it.
func (w *world) listen(name string, versions ...string) (f *fake, socket string, stop func()) {
	w.Helper()
	f = &fake{health: make(chan *healthv1alpha1.NodeWatchResourcesResponse)}
	socket = filepath.Join(w.folder, name)
	f.info = &registrationv1.PluginInfo{Type: registrationv1.DRAPlugin, Name: "driver", Endpoint: socket, SupportedVersions: versions}
	server := grpc.NewServer()
	registrationv1.RegisterRegistrationServer(server, f)
	drav1.RegisterDRAPluginServer(server, f)
	drav1beta1.RegisterDRAPluginServer(server, drav1beta1.V1ServerWrapper{DRAPluginServer: f})
	healthv1alpha1.RegisterDRAResourceHealthServer(server, f)
	listener, err := new(net.ListenConfig).Listen(w.Context(), "unix", socket)
	require.NoError(w, err)
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(listener) }) // it ends with Stop
	w.Cleanup(func() {
		server.Stop()
		running.Wait()
	})
	return f, socket, server.Stop
}

// serve serves a socket. It returns how to remove the socket.
func (w *world) serve(socket string) (remove func()) {
	ctx, cancel := context.WithCancel(w.Context())
	var running sync.WaitGroup
	running.Go(func() { w.Serve(ctx, socket) })
	w.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return cancel
}

func (w *world) eventually(what string, is func() bool) {
	w.Helper()
	require.Eventually(w, is, patience, time.Millisecond, what)
}

// uses reports whether the next call goes to a plugin.
func (w *world) uses(f *fake) func() bool {
	return func() bool {
		p, err := w.Get("driver")
		return err == nil && p.Endpoint == f.info.Endpoint
	}
}

// TestVersions: v1 is called before v1beta1, in whatever order a plugin names them.
func TestVersions(t *testing.T) {
	t.Parallel()
	for name, versions := range map[string][]string{
		"new": {drav1.DRAPluginService}, "old": {drav1beta1.DRAPluginService}, "both": {drav1beta1.DRAPluginService, drav1.DRAPluginService},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			f, _, _ := w.plugin("a", versions...)
			w.eventually("connected", func() bool { return w.Connected("driver") })
			p, err := w.Get("driver")
			require.NoError(t, err)
			response, err := p.Prepare(t.Context(), []*drav1.Claim{{Uid: "1"}})
			require.NoError(t, err)
			require.Contains(t, response.GetClaims(), "1")
			_, err = p.Unprepare(t.Context(), nil)
			require.ErrorContains(t, err, "busy")
			w.eventually("told", func() bool { return slices.Equal([]string{""}, slices.Compact(f.refusals())) }) // it is connected before it is told
			require.Equal(t, 1, f.prepared)
		})
	}
}

// TestRefused: a plugin that cannot be registered is told why, in the kubelet's words, and tried
// again.
func TestRefused(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*registrationv1.PluginInfo){
		"RegisterPlugin error -- no handler registered for plugin type: CSIPlugin at socket ": func(i *registrationv1.PluginInfo) { i.Type = registrationv1.CSIPlugin },
		"RegisterPlugin error -- plugin validation failed with err: DRA driver name is empty": func(i *registrationv1.PluginInfo) { i.Name = "" },
		"RegisterPlugin error -- plugin validation failed with err: must be below ":           func(i *registrationv1.PluginInfo) { i.Endpoint = "/etc/passwd" },
		"empty list of supported gRPC services (aka supported versions)":                      func(i *registrationv1.PluginInfo) { i.SupportedVersions = nil },
		`none of services supported by the plugin (["v2"]) are supported by the kubelet (["v1.DRAPlugin" "v1beta1.DRAPlugin"])`: func(i *registrationv1.PluginInfo) {
			i.SupportedVersions = []string{"v2"}
		},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			f := &fake{info: &registrationv1.PluginInfo{Type: registrationv1.DRAPlugin, Name: "driver", Endpoint: filepath.Join(w.folder, "a"), SupportedVersions: []string{drav1.DRAPluginService}}}
			change(f.info)
			p, refused, err := w.admitPlugin(t.Context(), "socket", f.info)
			require.Nil(t, p)
			require.ErrorContains(t, err, want)
			require.Equal(t, err.Error(), refused)
			require.False(t, w.Has("driver"))
		})
	}
}

// TestRetry: a plugin that fails to register is tried again.
func TestRetry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, _, _ := w.plugin("a")
	w.eventually("refused", func() bool { return len(f.refusals()) > 0 })
	require.Contains(t, f.refusals()[0], "empty list of supported gRPC services")
	f.mu.Lock()
	f.info.SupportedVersions = []string{drav1.DRAPluginService}
	f.mu.Unlock()
	w.eventually("registered", func() bool { return w.Connected("driver") })
}

// TestRollingUpdate: the newest plugin that is connected is called, and the older one when the newer
// has gone.
func TestRollingUpdate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	older, _, _ := w.plugin("older", drav1.DRAPluginService)
	w.eventually("the only one", w.uses(older))
	newer, removeNewer, _ := w.plugin("newer", drav1.DRAPluginService)
	w.eventually("the newer one", w.uses(newer))
	require.Equal(t, 2, w.Len())
	removeNewer()
	w.eventually("the older one again", w.uses(older))
	require.Equal(t, 1, w.Len())

	newest, _, stopNewest := w.plugin("newest", drav1.DRAPluginService)
	w.eventually("the newest one", w.uses(newest))
	stopNewest()
	w.eventually("one that is connected", w.uses(older))
}

// TestSameEndpoint: a plugin does not take the endpoint of another one.
func TestSameEndpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, _, _ := w.plugin("a", drav1.DRAPluginService)
	w.eventually("registered", func() bool { return w.Connected("driver") })
	_, _, err := w.admitPlugin(t.Context(), "b", first.info)
	require.ErrorContains(t, err, "plugin registration failed with err: endpoint "+first.info.Endpoint+" already registered for DRA driver plugin driver")
}

// TestHealth: what a plugin reports is known as long as its stream is there.
func TestHealth(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, remove, _ := w.plugin("a", drav1.DRAPluginService, healthv1alpha1.DRAResourceHealthService)
	report := func(status healthv1alpha1.HealthStatus) {
		f.health <- &healthv1alpha1.NodeWatchResourcesResponse{Devices: []*healthv1alpha1.DeviceHealth{{
			Device: &healthv1alpha1.DeviceIdentifier{PoolName: "pool", DeviceName: "device"}, Health: status, Message: "hot",
		}}}
	}
	report(healthv1alpha1.HealthStatus_UNHEALTHY)
	require.Equal(t, "driver", <-w.changes)
	p, err := w.Get("driver")
	require.NoError(t, err)
	reported, known := p.HealthOf(Device{"pool", "device"})
	require.True(t, known)
	require.Equal(t, corev1.ResourceHealthStatusUnhealthy, reported.Status)
	require.Equal(t, "hot", reported.Message)
	_, known = p.HealthOf(Device{"pool", "other"})
	require.False(t, known)
	require.True(t, w.ReportHealth())

	report(healthv1alpha1.HealthStatus_UNHEALTHY)
	report(healthv1alpha1.HealthStatus_HEALTHY)
	<-w.changes
	reported, _ = p.HealthOf(Device{"pool", "device"})
	require.Equal(t, corev1.ResourceHealthStatusHealthy, reported.Status)
	require.Empty(t, w.changes, "a report that repeats another is no change")
	remove()
	<-w.changes
	require.False(t, p.ReportsHealth())
}

// TestStale: a report that is not repeated in time is no longer believed.
func TestStale(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, _, _ := w.plugin("a", drav1.DRAPluginService)
	f.health <- &healthv1alpha1.NodeWatchResourcesResponse{Devices: []*healthv1alpha1.DeviceHealth{{
		Device: &healthv1alpha1.DeviceIdentifier{PoolName: "pool", DeviceName: "device"}, Health: healthv1alpha1.HealthStatus_HEALTHY, HealthCheckTimeoutSeconds: 1,
	}}}
	<-w.changes
	<-w.changes // since it is stale
	p, err := w.Get("driver")
	require.NoError(t, err)
	reported, known := p.HealthOf(Device{"pool", "device"})
	require.True(t, known)
	require.Equal(t, corev1.ResourceHealthStatusUnknown, reported.Status)
}

// TestFailedRegistrationLeavesNothing: what is started for a plugin ends with the try to register it. No other test
// runs beside it, whose goroutines it would see.
func TestFailedRegistrationLeavesNothing(t *testing.T) {
	w := newWorld(t)
	f, socket, _ := w.listen("a", drav1.DRAPluginService)
	f.notifyErr = errors.New("not now")
	for len(f.refusals()) < 3 {
		_, err := w.registerPlugin(t.Context(), socket)
		require.Error(t, err)
		require.False(t, w.Has("driver"))
	}
	var stacks strings.Builder
	require.NoError(t, pprof.Lookup("goroutine").WriteTo(&stacks, 2))
	require.NotContains(t, stacks.String(), "watchHealth")
	require.NotContains(t, stacks.String(), "keepConnected")
	w.eventually("no stream is left", func() bool { return f.streams.Load() == 0 })
}

// TestDroppedConnections: a plugin that drops each connection is not connected to without end.
func TestDroppedConnections(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, socket, _ := w.listen("a", drav1.DRAPluginService)
	f.info.Endpoint = filepath.Join(w.folder, "drops")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", f.info.Endpoint)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, listener.Close()) })
	connections := make(chan time.Time, 1000)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			connections <- time.Now()
			_, _ = conn.Write([]byte{0, 0, 0, 4, 0, 0, 0, 0, 0}) // empty SETTINGS: gRPC is connected
			_ = conn.Close()
		}
	}()
	w.serve(socket)
	first := <-connections
	for range 2 {
		<-connections
	}
	require.Greater(t, time.Since(first), reconnectInterval)
}

// TestLongPath: a driver may know the folder of its node by a path that is shorter than the one it is served by.
func TestLongPath(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	long := filepath.Join(w.folder, strings.Repeat("l", root.LongestSocket))
	require.NoError(t, os.Symlink(w.folder, long))
	w.options.Endpoint = func(named string) (string, error) { return filepath.Join(long, filepath.Base(named)), nil }
	_, socket, _ := w.listen("a", drav1.DRAPluginService)
	w.serve(filepath.Join(long, filepath.Base(socket)))
	w.eventually("connected", func() bool { return w.Connected("driver") })
	p, err := w.Get("driver")
	require.NoError(t, err)
	_, err = p.Prepare(t.Context(), []*drav1.Claim{{Uid: "1"}})
	require.NoError(t, err)
}
