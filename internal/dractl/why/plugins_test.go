package why

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	registrationv1 "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/root"
)

// driverPlugin is the registration service of a driver.
type driverPlugin struct {
	registrationv1.UnimplementedRegistrationServer
	name string
}

func (p driverPlugin) GetInfo(context.Context, *registrationv1.InfoRequest) (*registrationv1.PluginInfo, error) {
	return &registrationv1.PluginInfo{Type: registrationv1.DRAPlugin, Name: p.name}, nil
}

// TestPlugins asks the plugins of a node for their drivers, and no other node's.
func TestPlugins(t *testing.T) {
	t.Parallel()
	directory, err := os.MkdirTemp("", "p") //nolint:usetesting // its paths are too long for sockets
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(directory)) })
	opened, err := root.OpenDirectory(directory)
	require.NoError(t, err)
	folder, err := opened.Make("n", "uid")
	require.NoError(t, err)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(folder.Registry(), "real.sock"))
	require.NoError(t, err)
	server := grpc.NewServer()
	registrationv1.RegisterRegistrationServer(server, driverPlugin{name: "real.example.com"})
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		require.NoError(t, <-served)
	})
	node := func(name string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid"}}
	}
	p, err := openPlugins(directory)
	require.NoError(t, err)
	for driver, want := range map[string]bool{"real.example.com": true, "other.example.com": false} {
		registered, err := p.isRegistered(t.Context(), node("n"), driver)
		require.NoError(t, err)
		require.Equal(t, want, registered, driver)
	}
	_, err = p.isRegistered(t.Context(), node("m"), "real.example.com")
	require.ErrorContains(t, err, "has no folder of node m")
	_, err = openPlugins(filepath.Join(directory, "none"))
	require.ErrorContains(t, err, "find --plugins-dir")
}
