package drivers

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"

	"github.com/kwok-dra/kwok-dra/test/drivers/file"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// reportPeriod is how often health is reported that has not changed. The kubelet believes a report for 30 s.
const reportPeriod = 10 * time.Second

// health is what a driver reports of its devices.
type health struct {
	mu      sync.Mutex
	pool    string
	devices map[string]kubeletplugin.HealthStatus
	changed chan struct{}
}

// newHealth has the devices of a node be healthy.
func newHealth(node string) *health {
	h := &health{pool: node, devices: map[string]kubeletplugin.HealthStatus{}, changed: make(chan struct{})}
	for i := range 4 {
		h.devices[fmt.Sprint("file-", i)] = kubeletplugin.HealthStatusHealthy
	}
	return h
}

// reports has a driver report it.
func (h *health) reports(o *file.Options) { o.Health = h.watch }

// set changes the health of a device.
func (h *health) set(device string, status kubeletplugin.HealthStatus) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.devices[device] = status
	close(h.changed)
	h.changed = make(chan struct{})
}

func (h *health) report() (report kubeletplugin.DeviceHealthReport, changed <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for device, status := range h.devices {
		report.Devices = append(report.Devices, kubeletplugin.DeviceHealth{
			PoolName: h.pool, DeviceName: device, Health: status, Message: "says " + h.pool,
		})
	}
	return report, h.changed
}

func (h *health) watch(ctx context.Context, reports chan<- kubeletplugin.DeviceHealthReport) error {
	for {
		report, changed := h.report()
		select {
		case reports <- report:
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case <-changed:
		case <-time.After(reportPeriod):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// shows waits until the devices of a Pod's container have that health.
func (s *scene) shows(node, pod string, want corev1.ResourceHealthStatus) *corev1.Pod {
	s.Helper()
	return s.PodEventually(node, pod, func(pod *corev1.Pod) bool {
		statuses := pod.Status.ContainerStatuses
		if len(statuses) != 1 || len(statuses[0].AllocatedResourcesStatus) != 1 {
			return false
		}
		for _, device := range statuses[0].AllocatedResourcesStatus[0].Resources {
			if device.Health != want {
				return false
			}
		}
		return true
	})
}

// deviceOf is the device of a claim.
func (s *scene) deviceOf(node, claim string) string {
	s.Helper()
	return s.Claim(node, claim).Status.Allocation.Devices.Results[0].Device
}

func shouldReflectHealth(s *scene) {
	h := newHealth("health")
	d := s.newDriver("health", h.reports)
	s.runs("pod", d.Node)
	s.shows(d.Node, "pod", corev1.ResourceHealthStatusHealthy)
	device := s.deviceOf(d.Node, "pod")
	h.set(device, kubeletplugin.HealthStatusUnhealthy)
	pod := s.shows(d.Node, "pod", corev1.ResourceHealthStatusUnhealthy)
	require.Equal(s, []corev1.ResourceStatus{{Name: "claim:claim-0", Resources: []corev1.ResourceHealth{{
		ResourceID: corev1.ResourceID(fmt.Sprintf("%s/file=%s-%s", d.Name, s.Claim(d.Node, "pod").UID, device)),
		Health:     corev1.ResourceHealthStatusUnhealthy, Message: new("says health"),
	}}}}, pod.Status.ContainerStatuses[0].AllocatedResourcesStatus)
	h.set(device, kubeletplugin.HealthStatusHealthy)
	s.shows(d.Node, "pod", corev1.ResourceHealthStatusHealthy)
}

func mustReuseOneConnection(s *scene) {
	p := &split{scene: s, layout: newHealth("health-connection").reports}
	p.on("health-connection")
	c := &counter{}
	p.serve(c.listener())
	for _, pod := range []string{"one", "two"} {
		s.runs(pod, p.node)
		s.shows(p.node, pod, corev1.ResourceHealthStatusHealthy)
		require.Equal(s, int32(1), c.accepted.Load())
	}
}

func shouldUpdateToUnknown(s *scene) {
	d := s.newDriver("health-stops", newHealth("health-stops").reports)
	s.runs("pod", d.Node)
	s.shows(d.Node, "pod", corev1.ResourceHealthStatusHealthy)
	d.Stop()
	s.shows(d.Node, "pod", corev1.ResourceHealthStatusUnknown)
	d.again()
	s.shows(d.Node, "pod", corev1.ResourceHealthStatusHealthy)
}

func shouldReconnect(s *scene) {
	p := &split{scene: s}
	h := newHealth("health-reconnect")
	p.layout = h.reports
	p.on("health-reconnect")
	d := p.serve()
	s.runs("one", p.node)
	s.shows(p.node, "one", corev1.ResourceHealthStatusHealthy)
	d.Stop()
	s.shows(p.node, "one", corev1.ResourceHealthStatusUnknown)
	p.serve()
	s.runs("two", p.node)
	for _, pod := range []string{"one", "two"} {
		s.shows(p.node, pod, corev1.ResourceHealthStatusHealthy)
		h.set(s.deviceOf(p.node, pod), kubeletplugin.HealthStatusUnhealthy)
		s.shows(p.node, pod, corev1.ResourceHealthStatusUnhealthy)
	}
}

func shouldHandleConcurrentOperations(s *scene) {
	h := newHealth("health-many")
	d := s.newDriver("health-many", h.reports)
	pods := []string{"one", "two", "three"}
	for _, pod := range pods {
		s.createPod(pod, d.Node)
	}
	for _, pod := range pods {
		s.shows(d.Node, pod, corev1.ResourceHealthStatusHealthy)
	}
	require.Equal(s, 3, d.count(prepare+succeeded))
	for _, pod := range pods {
		h.set(s.deviceOf(d.Node, pod), kubeletplugin.HealthStatusUnhealthy)
	}
	for _, pod := range pods {
		s.shows(d.Node, pod, corev1.ResourceHealthStatusUnhealthy)
	}
}

// oneShared has a driver publish one device, which claims share.
func oneShared(o *file.Options) { o.Devices, o.Shared = 1, true }

func shouldReflectHealthOfShares(s *scene) {
	h := newHealth("health-shares")
	d := s.newDriver("health-shares", h.reports, oneShared)
	for _, pod := range []string{"one", "two"} {
		s.runs(pod, d.Node)
		s.shows(d.Node, pod, corev1.ResourceHealthStatusHealthy)
		require.NotNil(s, s.Claim(d.Node, pod).Status.Allocation.Devices.Results[0].ShareID)
	}
	h.set("file-0", kubeletplugin.HealthStatusUnhealthy)
	for _, pod := range []string{"one", "two"} {
		s.shows(d.Node, pod, corev1.ResourceHealthStatusUnhealthy)
	}
	h.set("file-0", kubeletplugin.HealthStatusHealthy)
	s.shows(d.Node, "one", corev1.ResourceHealthStatusHealthy)
}

func mustBeFunctionalWithoutShareID(s *scene) {
	s.functional(s.newDriver("no-shares"), 0, harness.ClaimSpec("no-shares"))
}

func mustBeFunctionalWithTwoShareIDs(s *scene) {
	d := s.newDriver("shares", oneShared)
	spec := harness.ClaimSpec("shares", "shares")
	s.functional(d, 1, harness.ClaimSpec("shares"))
	spec.Devices.Requests[1].Name = "second"
	s.functional(d, 2, spec)
}

// functional has a Pod with a claim of so many shares come and go.
func (s *scene) functional(d *driver, shares int, spec resourcev1.ResourceClaimSpec) {
	s.Helper()
	name := fmt.Sprint("shares-", shares)
	from := len(d.since(0))
	s.CreateClaim(d.Node, name, spec)
	s.CreatePod(d.Node, quickPod(name, d.Node, name))
	s.Running(d.Node, name)
	ids := map[any]bool{}
	for _, result := range s.Claim(d.Node, name).Status.Allocation.Devices.Results {
		if result.ShareID != nil {
			ids[*result.ShareID] = true
		}
	}
	require.Len(s, ids, shares)
	s.gone(name, d.Node)
	require.Equal(s, []string{prepare + " " + name, unprepare + " " + name}, d.since(from))
}
