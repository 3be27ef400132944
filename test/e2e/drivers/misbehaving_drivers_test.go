package drivers

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"

	kubeletplugins "github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/plugin"
	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/drivers/file"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// TestBadDrivers: a driver that does what no driver should holds up no Pods but its own.
func TestBadDrivers(t *testing.T) {
	t.Parallel()
	s := newGeneralScene(t, cluster.Options{})
	together(s, map[string]func(*scene){
		"Hangs":                   hangs,
		"HangsForDeletedPod":      hangsForDeletedPod,
		"HangsForDeletedNode":     hangsForDeletedNode,
		"FloodsHealth":            floodsHealth,
		"Dies":                    dies,
		"ReturnsUnknownClaim":     returnsUnknownClaim,
		"ReturnsTooFewResults":    returnsTooFewResults,
		"ReturnsTooMuch":          returnsTooMuch,
		"ReturnsLongError":        returnsLongError,
		"HangsInRegistration":     hangsInRegistration,
		"FloodsTheRegistry":       floodsTheRegistry,
		"RegistersThroughSymlink": registersThroughSymlink,
		"EndpointOutside":         endpointOutside,
		"EndpointBehindSymlink":   endpointBehindSymlink,
		"EndpointBecomesSymlink":  endpointBecomesSymlink,
	})
}

// pair is a node with a driver that works, and devices of another one that does not.
type pair struct {
	*scene
	node, class string
	bad         *driver
}

// newPair starts two drivers, of which the second one is going to be bad.
func (s *scene) newPair(node string, adjust ...func(*file.Options)) *pair {
	s.Helper()
	s.newDriver(node)
	bad, class := s.second(node, adjust...)
	return &pair{s, node, class, bad}
}

// newHalf starts a driver, and publishes the devices of another one that is not going to register.
func (s *scene) newHalf(node string) *pair {
	s.Helper()
	s.newDriver(node)
	class := node + "-2"
	s.DeviceClass(class, driverOf(class))
	s.ForeignSlice(node, driverOf(class))
	return &pair{s, node, class, &driver{s: s, counts: map[string]int{}}}
}

// startBad starts the driver whose devices are published already.
func (p *pair) startBad(adjust ...func(*file.Options)) {
	p.Helper()
	p.bad.start(p.node, append(adjust, func(o *file.Options) { o.Name, o.Devices = driverOf(p.class), 0 })...)
}

// holdsUp has a Pod of the bad driver fail, while one of the good driver comes and goes.
func (p *pair) holdsUp(message string) {
	p.Helper()
	p.createPod("bad", p.node, p.class)
	p.runs("good", p.node)
	p.gone("good", p.node)
	require.Contains(p, p.FailedPrepare(p.node, "bad").Message, message)
	require.False(p, harness.IsReady(p.Pod(p.node, "bad")))
}

// recovers has the bad driver be good again.
func (p *pair) recovers() {
	p.Helper()
	p.bad.answers(nil)
	p.Running(p.node, "bad")
	p.gone("bad", p.node)
}

// hangs has Pods come and go while the driver does not answer.
func hangs(s *scene) {
	p := s.newPair("hangs")
	release := p.bad.blocks(prepare)
	began := time.Now()
	p.createPod("bad", p.node, p.class)
	p.bad.eventually(prepare, 1)
	for _, pod := range []string{"one", "two"} {
		p.runs(pod, p.node)
		p.gone(pod, p.node)
	}
	p.createPod("bad-too", p.node, p.class)
	p.bad.eventually(prepare, 2)
	if ended := p.bad.count(prepare + failed); time.Since(began) < kubeletplugins.CallTimeout {
		require.Zero(p, ended, "none of its calls has ended")
	}
	require.False(p, harness.IsReady(p.Pod(p.node, "bad")))
	release()
	p.Running(p.node, "bad-too")
	p.recovers()
}

// hangsForDeletedPod has a Pod go whose driver is still asked to prepare its claim: the call is given up.
func hangsForDeletedPod(s *scene) {
	for pod, grace := range map[string]int64{"deleted": 1, "by-force": 0} {
		d := s.newDriver("hangs-" + pod)
		d.blocks(prepare)
		s.createPod(pod, d.Node)
		d.eventually(prepare, 1)
		s.DeletePod(d.Node, pod, grace)
		d.eventually(unprepare+succeeded, 1)
		s.Gone(d.Node, pod)
		require.Equal(s, []string{getInfo, notify, prepare + " " + pod, unprepare + " " + pod}, d.since(0))
		require.InDelta(s, 1, s.callsOf(d, prepare, "Canceled"), 0)
	}
}

// hangsForDeletedNode has a node go while its driver is asked. The folder of the node stays as long as a
// plugin listens there, and goes with the last one.
func hangsForDeletedNode(s *scene) {
	const node = "hangs-node"
	good := s.newDriver(node)
	bad, class := s.second(node)
	bad.blocks(prepare)
	s.createPod("bad", node, class)
	bad.eventually(prepare, 1)
	s.DeleteNode(node)
	bad.eventually(prepare+failed, 1)
	folder := filepath.Join(s.plugins, node)
	require.DirExists(s, filepath.Join(folder, "plugins"))
	good.Stop()
	bad.Stop()
	s.Eventually(harness.Patience, func() string {
		if _, err := os.Lstat(folder); !os.IsNotExist(err) {
			return "the folder of the node is still there"
		}
		return ""
	})
	require.Equal(s, 1, bad.count(prepare))
}

func dies(s *scene) {
	p := s.newPair("dies")
	stopped := make(chan struct{})
	p.bad.instead(prepare, func(ctx context.Context) (any, error) {
		go func() {
			p.bad.Stop()
			close(stopped)
		}()
		<-ctx.Done()
		return nil, ctx.Err()
	})
	p.holdsUp("NodePrepareResources: rpc error: code = Unavailable")
	<-stopped
	p.bad.answers(nil)
	p.bad.again()
	p.recovers()
}

// responds has the bad driver respond with a claim of any UID.
func (p *pair) responds(claims map[string]*drav1.NodePrepareResourceResponse) {
	p.bad.instead(prepare, func(context.Context) (any, error) {
		return &drav1.NodePrepareResourcesResponse{Claims: claims}, nil
	})
}

func returnsUnknownClaim(s *scene) {
	p := s.newPair("unknown-claim")
	p.responds(map[string]*drav1.NodePrepareResourceResponse{"nonsense": {}})
	p.holdsUp("NodePrepareResources returned result for unknown claim UID nonsense")
	p.recovers()
}

func returnsTooFewResults(s *scene) {
	p := s.newPair("too-few")
	p.responds(nil)
	p.holdsUp("NodePrepareResources skipped 1 ResourceClaims")
	p.recovers()
}

// returnsTooMuch returns more than what gRPC takes, 4 MiB.
func returnsTooMuch(s *scene) {
	p := s.newPair("too-much")
	p.responds(map[string]*drav1.NodePrepareResourceResponse{"huge": {Error: strings.Repeat("x", 5<<20)}})
	p.holdsUp("NodePrepareResources: rpc error: code = ResourceExhausted")
	p.recovers()
}

// returnsLongError returns more than what an event takes.
func returnsLongError(s *scene) {
	p := s.newPair("long-error")
	p.bad.instead(prepare, func(context.Context) (any, error) {
		return nil, fmt.Errorf("long%s", strings.Repeat(" error", 1000))
	})
	p.holdsUp("desc = long error error")
	p.recovers()
}

func hangsInRegistration(s *scene) {
	p := s.newHalf("hangs-early")
	release := p.bad.blocks(getInfo)
	p.startBad()
	p.holdsUp("DRA driver " + p.bad.Name + " is not registered")
	p.bad.eventually(getInfo+failed, 1)
	release()
	p.recovers()
}

// floodsHealth has the health of a device change all the time.
func floodsHealth(s *scene) {
	h := newHealth("floods-health")
	p := s.newPair("floods-health", h.reports)
	p.runs("bad", p.node, p.class)
	device := p.deviceOf(p.node, "bad")
	ctx, stop := context.WithCancel(p.Context())
	defer stop()
	go func() {
		for ctx.Err() == nil {
			h.set(device, kubeletplugin.HealthStatusHealthy)
			h.set(device, kubeletplugin.HealthStatusUnhealthy)
		}
	}()
	p.shows(p.node, "bad", corev1.ResourceHealthStatusUnhealthy)
	for _, pod := range []string{"one", "two", "three"} {
		p.runs(pod, p.node)
		p.gone(pod, p.node)
	}
	stop()
	p.shows(p.node, "bad", corev1.ResourceHealthStatusUnhealthy)
}

// floodsTheRegistry has more files than sockets are served, and hundreds of sockets behind which nobody answers.
func floodsTheRegistry(s *scene) {
	d := s.newDriver("floods")
	for i := range 1100 {
		require.NoError(s, os.WriteFile(filepath.Join(d.Registry, fmt.Sprint("a-file-", i)), []byte("flood"), 0o600))
	}
	for i := range 300 {
		listener, err := new(net.ListenConfig).Listen(s.Context(), "unix", filepath.Join(d.Registry, fmt.Sprint("a-socket-", i)))
		require.NoError(s, err)
		s.Cleanup(func() { require.NoError(s, listener.Close()) })
	}
	late, class := s.second(d.Node)
	s.runs("good", d.Node)
	s.runs("late", d.Node, class)
	s.gone("good", d.Node)
	require.Equal(s, []string{getInfo, notify, prepare + " good", unprepare + " good"}, d.since(0))
	require.Equal(s, 1, late.count(notify))
}

// outside is a folder that is not below that of a node.
func (s *scene) outside() string {
	s.Helper()
	folder, err := os.MkdirTemp("", "o")
	require.NoError(s, err)
	s.Cleanup(func() { require.NoError(s, os.RemoveAll(folder)) })
	return folder
}

// registersThroughSymlink has a registration socket elsewhere, and a link to it in the registry.
func registersThroughSymlink(s *scene) {
	p := s.newHalf("link")
	outside := p.outside()
	p.startBad(plugin(kubeletplugin.RegistrarDirectoryPath(outside)))
	socket := p.bad.Name + "-reg.sock"
	require.NoError(p, os.Symlink(filepath.Join(outside, socket), filepath.Join(p.bad.Registry, socket)))
	p.holdsUp("DRA driver " + p.bad.Name + " is not registered")
	require.Empty(p, p.bad.since(0))
}

func endpointOutside(s *scene) {
	p := s.newHalf("outside")
	p.startBad(plugin(kubeletplugin.PluginDataDirectoryPath(p.outside())))
	p.holdsUp("DRA driver " + p.bad.Name + " is not registered")
	p.requireRefused()
}

// requireRefused wants the driver to know why it has not been registered.
func (p *pair) requireRefused() {
	p.Helper()
	p.bad.eventually(notify+failed, 1)
	require.Contains(p, p.bad.RegistrationStatus().Error, "must be below")
	require.Zero(p, p.bad.count(prepare))
}

func endpointBehindSymlink(s *scene) {
	p := s.newHalf("behind")
	link := filepath.Join(p.plugins, p.node, "plugins", "link")
	require.NoError(p, os.Symlink(p.outside(), link))
	p.startBad(plugin(kubeletplugin.PluginDataDirectoryPath(link)))
	p.holdsUp("DRA driver " + p.bad.Name + " is not registered")
	p.requireRefused()
}

// endpointBecomesSymlink has a driver register, and then its endpoint lead elsewhere.
func endpointBecomesSymlink(s *scene) {
	p := s.newHalf("becomes")
	p.startBad(plugin(kubeletplugin.DRAService(false)))
	p.bad.eventually(notify+succeeded, 1)
	outside := p.outside()
	elsewhere := &driver{s: s, counts: map[string]int{}}
	elsewhere.start(p.node, plugin(kubeletplugin.RegistrationService(false), kubeletplugin.PluginDataDirectoryPath(outside)),
		func(o *file.Options) { o.Name, o.Devices = driverOf(p.class), 0 })
	require.NoError(p, os.Symlink(filepath.Join(outside, "dra.sock"), filepath.Join(p.bad.Plugins, p.bad.Name, "dra.sock")))
	p.holdsUp("NodePrepareResources: rpc error: code = Unavailable")
	p.Eventually(harness.Patience, func() string {
		return harness.Missing(p.Messages(p.node, "bad", "FailedPrepareDynamicResources"), "must be below")
	})
	require.Empty(p, elsewhere.since(0))
}
