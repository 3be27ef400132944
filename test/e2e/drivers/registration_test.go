package drivers

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"sync/atomic"

	"github.com/stretchr/testify/require"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"

	"github.com/kwok-dra/kwok-dra/test/drivers/file"
)

func mustRegisterAfterKubeletRestart(s *scene) {
	d := s.newDriver("reg-kubelet")
	before := d.count(notify + succeeded)
	s.restartKubelet(d.Node)
	d.eventually(notify+succeeded, before+1)
}

func mustRegisterAfterPluginRestart(s *scene) {
	d := s.newDriver("reg-plugin")
	d.Stop()
	d.again()
	s.runs("pod", d.Node)
}

func mustRecoverAfterRegistrationFailure(s *scene) {
	d := s.newDriver("reg-info")
	before := d.count(notify)
	d.SetGetInfoError(errors.New("simulated GetInfo failure"))
	s.restartKubelet(d.Node)
	d.eventually(getInfo+failed, 2)
	require.Equal(s, before, d.count(notify))
	d.SetGetInfoError(nil)
	d.eventually(notify+succeeded, before+1)
	s.runs("pod", d.Node)
}

func mustRecoverAfterNotifyFailure(s *scene) {
	d := s.newDriver("reg-notify")
	before := d.count(notify + succeeded)
	d.SetNotifyRegistrationStatusError(errors.New("simulated NotifyRegistrationStatus failure"))
	s.restartKubelet(d.Node)
	d.eventually(notify+failed, 2)
	require.Equal(s, before, d.count(notify+succeeded))
	d.SetNotifyRegistrationStatusError(nil)
	d.eventually(notify+succeeded, before+1)
	s.runs("pod", d.Node)
}

// split is a plugin of which registrar and service start and stop one by one.
type split struct {
	*scene
	node   string
	layout func(*file.Options)
}

// each tries a spec with the sockets in two folders, and in a common one.
func each(spec func(p *split)) func(*scene) {
	return func(s *scene) {
		together(s, map[string]func(*scene){
			"TwoSockets": func(s *scene) { spec(&split{s, "", plugin()}) },
			"OneCommonSocket": func(s *scene) {
				spec(&split{s, "-common", func(o *file.Options) {
					plugin(kubeletplugin.PluginDataDirectoryPath(o.Registry), kubeletplugin.PluginSocket(o.Name+"-common.sock"))(o)
				}})
			},
		})
	}
}

// on creates the node of the plugin, and registers it.
func (p *split) on(node string) {
	p.Helper()
	p.node = node + p.node
	p.newNode(p.node)
	d := p.without(kubeletplugin.DRAService(false))
	d.eventually(notify+succeeded, 1)
}

// without starts a part of the plugin.
func (p *split) without(part kubeletplugin.Option, adjust ...func(*file.Options)) *driver {
	p.Helper()
	d := &driver{s: p.scene, counts: map[string]int{}}
	d.start(p.node, append(adjust, p.layout, plugin(part), func(o *file.Options) {
		o.Devices = 0
	})...)
	return d
}

// serve starts the service of the plugin, and waits for its slices.
func (p *split) serve(adjust ...func(*file.Options)) *driver {
	p.Helper()
	d := &driver{s: p.scene, counts: map[string]int{}}
	d.start(p.node, append(adjust, p.layout, plugin(kubeletplugin.RegistrationService(false)))...)
	d.published()
	return d
}

func mustBeFunctionalWhenListeningLater(p *split) {
	p.on("later")
	d := p.serve()
	p.runs("pod", p.node)
	require.Equal(p, []string{prepare + " pod"}, d.since(0))
}

func mustBeFunctionalAfterReconnect(p *split) {
	p.on("reconnect")
	d := p.serve()
	p.runs("pod", p.node)
	d.Stop()
	d.wiped()
	d = p.serve()
	p.gone("pod", p.node)
	require.Equal(p, []string{unprepare + " pod"}, d.since(0))
}

// counter counts the connections that a listener takes.
type counter struct {
	net.Listener
	accepted atomic.Int32
}

// Accept implements net.Listener.
func (c *counter) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.accepted.Add(1)
	}
	return conn, err
}

// listener has a plugin listen with a counter.
func (c *counter) listener() func(*file.Options) {
	return plugin(kubeletplugin.PluginListener(func(ctx context.Context, path string) (_ net.Listener, err error) {
		c.Listener, err = new(net.ListenConfig).Listen(ctx, "unix", path)
		return c, err
	}))
}

func mustUseOneConnection(s *scene) {
	p := &split{scene: s, layout: plugin()}
	p.on("one-connection")
	c := &counter{}
	d := p.serve(c.listener())
	for _, pod := range []string{"one", "two"} {
		s.runs(pod, p.node)
		s.gone(pod, p.node)
		require.Equal(s, int32(1), c.accepted.Load())
	}
	require.Equal(s, []string{prepare + " one", unprepare + " one", prepare + " two", unprepare + " two"}, d.since(0))
	require.FileExists(s, filepath.Join(d.Plugins, d.Name, "dra.sock"))
}
