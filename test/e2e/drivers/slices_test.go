package drivers

import (
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"

	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet"
)

func slicesMustBeRemovedOnStartup(s *scene) {
	s.newNode("startup")
	s.ForeignSlice("startup", driverOf("startup"))
	s.ForeignSlice("startup-other", driverOf("startup"))
	s.restartKubelet("startup")
	s.Retired("startup")
	require.Len(s, s.SlicesOf("startup-other"), 1, "only slices of the node")
}

// wipedAfter waits until the driver has no slices, which no driver loses early.
func (d *driver) wipedAfter(stopped time.Time) {
	d.s.Helper()
	d.wiped()
	require.GreaterOrEqual(d.s, time.Since(stopped), kubelet.WipeDelay)
}

func slicesMustBeRemovedAfterUnregistration(s *scene) {
	d := s.newDriver("unregistered")
	stopped := time.Now()
	d.Stop()
	d.wipedAfter(stopped)
}

func slicesMustBeRemovedIfPluginStops(p *split) {
	p.on("stops")
	d := p.serve()
	p.runs("pod", p.node) // so kwok-dra has connected: until then the time runs from the registration
	stopped := time.Now()
	d.Stop()
	d.wipedAfter(stopped)
}

func slicesMustBeRemovedIfUnresponsive(s *scene) {
	p := &split{scene: s, layout: plugin()}
	began := time.Now()
	p.on("unresponsive")
	s.ForeignSlice(p.node, driverOf(p.node))
	d := p.without(kubeletplugin.RegistrationService(false))
	d.Stop()
	d.wipedAfter(began)
}

// slicesMustNotBeRemoved has another plugin stop later, but for good: when its slices are wiped, those of
// the one that has come back would have been.
func slicesMustNotBeRemoved(p *split) {
	p.on("quick")
	d := p.serve()
	gone := p.newDriver(p.node + "-not")
	before := d.published()
	d.Stop()
	gone.Stop()
	d = p.serve()
	gone.wiped()
	require.Equal(p, before, d.published())
	require.Equal(p, int64(1), p.SlicesOf(p.node)[0].Generation, "and nobody has written them")
}
